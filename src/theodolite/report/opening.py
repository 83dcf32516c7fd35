"""What a page opens with: the diagnosis, the network as one strip, words, pictures and small tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from theodolite.report.diagnosis import views

if TYPE_CHECKING:
    from theodolite.report.figures import Plot

FEW_LAYERS = 10
"""Up to so many layers are named below their columns; of more the name shows when pointed at."""


@dataclass(frozen=True)
class StripCell:
    """One number of one layer: its row, the number in words, its height among the layers (0 to 1), whether it is wrong.

    ``expected`` is the band of theory in words, and ``band`` its two ends as heights, where there is one.
    """

    row: str
    value: str
    height: float
    wrong: bool = False
    expected: str = ""
    band: tuple[float, float] | None = None


@dataclass(frozen=True)
class StripLayer:
    """A column of the strip: a layer with its kind and shape."""

    name: str
    kind: str
    cells: tuple[StripCell, ...]

    @property
    def words(self) -> str:
        """All of it, for whoever points at it or hears it read."""
        return f"{self.name} ({self.kind}): " + ", ".join(
            f"{cell.row} {cell.value}" + (f" (expected {cell.expected})" if cell.expected else "")
            for cell in self.cells
        )


ROW_WORDS = {
    "signal": "mean square of a layer's outputs",
    "differences": "share of the signal in which samples differ",
    "gradient": "norm of the gradient in a layer's weights",
    "change": "how far the weights moved from their start, over their size",
    "dimension": "intrinsic dimension of the features",
    "alpha": "exponent of the tail of the weights' spectrum",
    "stable rank": "directions that carry most of the weights' norm",
}


def _row_words(strip: Sequence[StripLayer]) -> list[tuple[str, str]]:
    """Each row of the strip in words: what it is, and how it goes from the first layer to the last."""
    found = []
    for place, cell in enumerate(strip[0].cells if strip else ()):
        seen = [layer.cells[place].value for layer in strip if layer.cells[place].value != "not measured"]
        ends = f"; {seen[0]} in the first layer, {seen[-1]} in the last" if len(seen) > 1 else ""
        found.append((cell.row, ROW_WORDS.get(cell.row, cell.row) + ends))
    return found


@dataclass(frozen=True)
class SmallTable:
    """A table of words with a caption; the ``note`` below it says what its symbols mean."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Opening:
    """The first screen of a page."""

    diagnosis: Any = None
    strip: Sequence[StripLayer] = ()
    words: Sequence[str] = ()
    pictures: Sequence[Plot] = ()
    tables: Sequence[SmallTable] = ()
    dashboard: str = ""
    alarm: str = ""

    def values(self) -> Mapping[str, Any]:
        """What the templates show of it; the diagnosis under ``found``, which is None where there is none."""
        return {
            "found": None if self.diagnosis is None else views(self.diagnosis),
            "strip": self.strip,
            "strip_rows": [cell.row for cell in self.strip[0].cells] if self.strip else [],
            "strip_name": f"th-layer-{crc32(repr(self.strip).encode()):x}",  # its own where a notebook has several
            "strip_words": _row_words(self.strip),
            "strip_bands": any(cell.band for layer in self.strip for cell in layer.cells),
            "named": len(self.strip) <= FEW_LAYERS,
            "words": self.words,
            "pictures": self.pictures,
            "tables": self.tables,
            "dashboard": self.dashboard,
            "alarm": self.alarm,
        }
