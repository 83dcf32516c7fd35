"""What a page opens with: the diagnosis, the network as one strip, words, pictures and small tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from theodolite.report.diagnosis import views

if TYPE_CHECKING:
    from theodolite.report.figures import Plot

FEW_LAYERS = 16
"""Up to so many layers are named below their columns; of more the name shows when pointed at."""


@dataclass(frozen=True)
class StripCell:
    """One number of one layer: its row, the number in words, its height among the layers (0 to 1), whether it is wrong."""

    row: str
    value: str
    height: float
    wrong: bool = False


@dataclass(frozen=True)
class StripLayer:
    """A column of the strip: a layer with its kind and shape."""

    name: str
    kind: str
    cells: tuple[StripCell, ...]

    @property
    def words(self) -> str:
        """All of it, for whoever points at it or hears it read."""
        return f"{self.name} ({self.kind}): " + ", ".join(f"{cell.row} {cell.value}" for cell in self.cells)


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
            "named": len(self.strip) <= FEW_LAYERS,
            "words": self.words,
            "pictures": self.pictures,
            "tables": self.tables,
            "dashboard": self.dashboard,
            "alarm": self.alarm,
        }
