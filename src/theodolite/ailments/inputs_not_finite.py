"""Are there inputs or targets that are not numbers?

An exact fact: all of the data is looked at where it lies in memory as tensors, else the batches that were read. Infinities in
what is called a mask are left alone. Where the loss of the batch is finite all the same (the script fills or leaves out what is
missing), it is a note.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.samples import whole_columns
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.state import untouched
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


def judge(chart: Chart) -> Iterator[Finding]:
    holes = [*_holes(chart.batches, held_out=False), *_holes(chart.held_out, held_out=True)]
    whole = _whole(chart.data)
    if not holes and not whole:
        return
    if holes:
        first = holes[0]
        source = "validation batch" if first.held_out else "batch"
        total, samples = sum(hole.count for hole in holes), sum(hole.entries for hole in holes)
        numbers = "number that is" if first.count == 1 else "numbers that are"
        places = f"{len(holes)} such place{'s' * (len(holes) > 1)}"
        said = (
            f"{source} {first.place} (counted from 0) holds {first.count} {numbers} NaN or infinite in its {first.part}; "
            f"{places} in {len(chart.batches) + len(chart.held_out)} batches read ({total} of {samples})."
        )
        where = f"{source} {first.place}, {first.part}"
    else:
        said, where, total = whole, "data", 1
    if whole and holes:
        said += f" {whole}"
    mended = bool(holes) and all(_is_mended(chart, hole.batch) for hole in holes[:4])
    yield Finding(
        severity="note" if mended else "critical",
        where=where,
        says=said[0].upper()
        + said[1:]
        + (" The loss is finite all the same." if mended else " One such batch turns every weight into NaN."),
        remedy="find the rows: (~torch.isfinite(x)).flatten(1).any(1).nonzero(); leave them out, or x = torch.nan_to_num(x) "
        "after scaling",
        evidence=(seen("numbers that are not finite", total, where=where),),
    )


def _holes(batches: tuple[Batch, ...], *, held_out: bool) -> Iterator[_Hole]:
    for place, batch in enumerate(batches):
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
                listed = ", ".join(str(int(row)) for row in rows[:5]) + (", ..." if len(rows) > 5 else "")
                return f"Of all {len(column)} rows of tensor {place}, {len(rows)} are not finite: {listed}."
    return ""


def _is_mended(chart: Chart, batch: Batch) -> bool:
    """Whether the loss of this batch is a number although the batch is not."""
    if chart.model is None or not chart.has("loss"):
        return False
    try:
        with untouched(chart.model), torch.no_grad():
            return math.isfinite(float(chart.loss_on(chart.model, batch)))
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False


def _case(seed: int, value: float | None, *, targets: bool = False, filled: bool = False) -> dict[str, object]:
    torch.manual_seed(seed)
    x, y = torch.randn(256, 8), torch.randn(256, 1)
    if value is not None:
        (y if targets else x)[100 + seed, 0] = value
    layers = [nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)]
    model = nn.Sequential(*([_Filled()] if filled else []), *layers)
    return {"model": model, "data": (x, y), "loss": nn.functional.mse_loss}


class _Filled(nn.Module):
    """What is missing becomes 0."""

    def forward(self, x: Tensor) -> Tensor:
        """The inputs, finite."""
        return torch.nan_to_num(x)


def nan_in_inputs(seed: int) -> dict[str, object]:
    return _case(seed, math.nan)


def infinite_targets(seed: int) -> dict[str, object]:
    return _case(seed, math.inf, targets=True)


def finite(seed: int) -> dict[str, object]:
    return _case(seed, 1e6)


def filled_by_the_model(seed: int) -> dict[str, object]:
    return _case(seed, math.nan, filled=True)


ailment = Ailment(
    question="Are all inputs and targets numbers?",
    needs={"data"},
    signs=("batches", "held_out"),
    judge=judge,
    examples={"sick": (nan_in_inputs, infinite_targets), "healthy": (finite, filled_by_the_model)},
    explains=("weights-not-finite", "loss-stalls", "step-too-large", "gradient-explodes", "signal-explodes"),
)
