"""What a figure of a reading draws."""

from dataclasses import dataclass

from theodolite.core.checks import InputError

Corners = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Series:
    """What a figure draws: measurements at ``x`` (numbers, or names such as layers) and theory's band there.

    ``low`` and ``high`` are empty where theory says nothing; at a single place ``low > high`` says so. ``log`` names the
    logarithmic axes, as in ``"xy"``. ``line`` is another curve, such as a fit, not a number where it does not apply.
    """

    x: tuple[float, ...] | tuple[str, ...]
    measured: tuple[float, ...]
    stderr: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    x_label: str = ""
    y_label: str = ""
    log: str = ""
    line: tuple[float, ...] = ()
    line_label: str = ""

    def __post_init__(self) -> None:
        given = (self.stderr, self.low, self.high, self.line)
        lengths = {len(self.x), len(self.measured), *(len(values) for values in given if values)}
        if len(lengths) > 1:
            raise InputError(f"expected as many values as places in every list, got lengths {sorted(lengths)}")


@dataclass(frozen=True, slots=True)
class CellPicture(Series):
    """Polygons of a plane, each with its group (such as the class answered there), and points marked among them."""

    polygons: tuple[Corners, ...] = ()
    groups: tuple[int, ...] = ()
    points: Corners = ()
