"""What has training, or fine-tuning, written into the weights?

For each matrix the difference from the starting point: how large it is, how few directions carry it (an adapter of rank r
shows as numerical rank r), how many of its singular values stand out of noise, and what became of the tail exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.io.weights import owners_of, readable
from theodolite.measure.spectra import Spectrum, marchenko_pastur_bulk, power_law, spectrum_of, weight_matrices


@dataclass(frozen=True)
class _Change:
    """A matrix before and after: the size of the difference, its spectrum, and the two exponents."""

    name: str
    relative: float
    difference: Spectrum
    rank: int
    spikes: int
    alpha_before: float
    alpha_after: float


def read(subject: Subject) -> Iterator[Reading]:
    """Size, rank and spikes of the change of every weight matrix, and the change of its exponent."""
    changes = list(_changes(subject))
    for change in changes:
        yield Reading(
            quantity="size of the change over the size at the start",
            where=change.name,
            measured=change.relative,
            meaning="The Frobenius norm of the difference over that of the start. Far below 0.1: the layer hardly moved.",
        )
    moved = [change for change in changes if change.relative > 0]
    for change in moved:
        smaller = min(change.difference.rows, change.difference.columns)
        yield Reading(
            quantity="rank of the change",
            where=change.name,
            measured=float(change.rank),
            expected=Band(high=float(smaller)),
            meaning=f"Stable rank {change.difference.stable_rank:.3g}, effective rank {change.difference.effective_rank:.3g} "
            f"of {smaller}, counted above the rounding of the stored weights. An adapter of rank r would show r.",
        )
    for change in moved:
        yield Reading(
            quantity="spikes in the change",
            where=change.name,
            measured=float(change.spikes),
            expected=Band(high=0.0),
            meaning="Directions of the difference that noise of its size would not have: what was learnt, rather than shaken.",
        )
    for change in moved:
        if math.isfinite(change.alpha_before) and math.isfinite(change.alpha_after):
            yield Reading(
                quantity="change of alpha",
                where=change.name,
                measured=change.alpha_after - change.alpha_before,
                meaning=f"From {change.alpha_before:.3g} to {change.alpha_after:.3g}. Downwards: the tail has grown heavier.",
            )


def _changes(subject: Subject) -> Iterator[_Change]:
    owners, shapes = owners_of(subject.model), {name: weight.shape for name, weight in subject.weights.items()}
    origin = subject.origin or {}
    both = {name: w for name, w in subject.weights.items() if name in origin and w.shape == origin[name].shape}
    pairs = {name: w for name, w in both.items() if len(w.shape) >= 2 and w.dtype.is_floating_point}
    starts = readable({name: origin[name] for name in pairs}, subject.faults)
    ends = readable(pairs, subject.faults)
    before: tuple[str, Tensor] | None = None
    for done, (weight, after) in enumerate(ends):
        subject.notebook.progress("comparing weights", done, len(pairs))
        while before is None or (before[0] != weight.name and weight.name not in subject.faults):
            start = next(starts, None)
            if start is None:
                return
            before = (start[0].name, start[1])
        if before[0] != weight.name:
            continue
        keywords = {"module": owners.get(weight.name), "shapes": shapes}
        olds = weight_matrices(weight.name, before[1].to(after.device), **keywords)  # type: ignore[arg-type]
        news = weight_matrices(weight.name, after, **keywords)  # type: ignore[arg-type]
        for old, new in zip(olds, news, strict=True):
            if old.matrix is not None and new.matrix is not None and min(new.matrix.shape) > 1:
                yield _change(new.name, old.matrix, new.matrix)


def _change(name: str, old: Tensor, new: Tensor) -> _Change:
    difference = spectrum_of(new.double() - old.double())
    start, size = old.double().norm().item(), math.sqrt(difference.trace)
    bulk = marchenko_pastur_bulk(difference.eigenvalues, difference.rows, difference.columns) if size > 0 else None
    exponents = [power_law(spectrum_of(matrix).eigenvalues).alpha for matrix in (old, new)]
    rank = int((difference.eigenvalues > _rounding(old) + _rounding(new)).sum())
    low_rank = (
        rank < min(old.shape) // 2
    )  # then what lies below is rounding, not noise of training: all of it stands out
    spikes = rank if low_rank else bulk.spikes if bulk is not None and not bulk.reason else 0
    return _Change(name, min(size / max(start, 1e-300), 1e300), difference, rank, spikes, *exponents)


def _rounding(matrix: Tensor) -> float:
    """The largest eigenvalue that rounding to the stored precision can write into a difference."""
    rows, columns = matrix.shape
    noise = torch.finfo(matrix.dtype).eps ** 2 / 12 * matrix.double().square().mean().item()
    return noise * (math.sqrt(rows) + math.sqrt(columns)) ** 2


instrument = Instrument(
    question="What has training written into the weights?",
    read=read,
    needs={"weights", "origin"},
    cost="free",
    laws=("bbp-spikes", "marchenko-pastur"),
)
