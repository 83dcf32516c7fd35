"""Are there NaN or infinite inputs or targets?

Exact: all of the data is checked if it is in memory as tensors, otherwise the batches that were read. Infinities in an argument
called a mask are fine. If the loss of the batch is finite all the same (the code fills or skips missing values), it is a note.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence, few_of
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, validation_batches, whole_columns
from theodolite.evidence.thresholds import A_FEW
from theodolite.io.batches import Batch


@dataclass(frozen=True)
class _Hole:
    """What is not a number in one batch."""

    place: int
    held_out: bool
    part: str
    count: int
    entries: int
    batch: Batch


def judge(subject: Subject) -> Iterator[Finding]:
    holes = [*_holes(batches(subject), held_out=False), *_holes(validation_batches(subject), held_out=True)]
    whole = _whole(subject.data)
    if not holes and not whole:
        return
    if holes:
        first = holes[0]
        source = "validation batch" if first.held_out else "batch"
        total = sum(hole.count for hole in holes)
        read, affected = (
            len(batches(subject)) + len(validation_batches(subject)),
            {(h.held_out, h.place) for h in holes},
        )
        said = (
            f"{source} {first.place} (counted from 0) has NaN or infinite numbers in its {first.part}: {first.count} of "
            f"{first.entries}. {len(affected)} of {read} batches {'is' if len(affected) == 1 else 'are'} affected."
        )
        where = f"{source} {first.place}, {first.part}"
    else:
        said, where, total = whole, "data", 1
    if whole and holes:
        said += f" {whole}"
    mended = bool(holes) and all(_is_mended(subject, hole.batch) for hole in holes[:A_FEW])
    yield Finding(
        severity="note" if mended else "critical",
        where=where,
        says=said[0].upper()
        + said[1:]
        + (" The loss is finite all the same." if mended else " One such batch turns every weight into NaN."),
        remedy="find the rows: (~torch.isfinite(x)).flatten(1).any(1).nonzero(); leave them out, or x = torch.nan_to_num(x) "
        "after scaling",
        evidence=(evidence("numbers that are not finite", total, where=where),),
    )


def _holes(whole: tuple[Batch, ...], *, held_out: bool) -> Iterator[_Hole]:
    for place, batch in enumerate(whole):
        named: list[tuple[str, Any]] = [("inputs", value) for value in batch.inputs]
        named += [(f"input {name}", value) for name, value in batch.keywords.items() if "mask" not in name.lower()]
        for part, value in (*named, ("targets", batch.target)):
            if isinstance(value, Tensor) and value.is_floating_point():
                count = value.numel() - int(torch.isfinite(value).sum())
                if count:
                    yield _Hole(place, held_out, part, count, value.numel(), batch)


def _whole(data: Any) -> str:
    """In words, the rows of data in memory that are not finite; empty where all are or it cannot be told."""
    for place, column in enumerate(whole_columns(data) or ()):
        if column.is_floating_point() and not bool(torch.isfinite(column.sum())):
            rows = (~torch.isfinite(column)).reshape(len(column), -1).any(1).nonzero().flatten()
            if len(rows):
                listed = few_of([str(int(row)) for row in rows])
                return f"Rows with NaN or infinite numbers in tensor {place}: {listed} ({len(rows)} of {len(column)})."
    return ""


def _is_mended(subject: Subject, batch: Batch) -> bool:
    """Whether the loss of this batch is a number although the batch is not."""
    if subject.model is None or not subject.has("loss"):
        return False
    try:
        with untouched(subject.model), torch.no_grad():
            return math.isfinite(float(subject.loss_on(batch)))
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False


ailment = Ailment(question="Are there NaN or infinite inputs or targets?", needs={"data"}, judge=judge)
