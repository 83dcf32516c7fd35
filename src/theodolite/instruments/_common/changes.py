"""What training changed in every weight matrix of a subject: a few numbers of the difference."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.core.reading_table import known_number
from theodolite.core.subject import Subject
from theodolite.instruments._common.weights import weighed
from theodolite.io.weight_parts import InHand, WeightPart
from theodolite.measure.spectra import marchenko_pastur_bulk, power_law, spectrum_of, weight_matrices


@dataclass(frozen=True)
class WeightChange:
    """A matrix before and after: the size of the difference, its ranks (of ``smaller`` at most), spikes, both exponents."""

    name: str
    relative: float
    smaller: int
    rank: int
    stable_rank: float
    effective_rank: float
    spikes: int
    alpha_before: float
    alpha_after: float


def weight_changes(subject: Subject) -> list[WeightChange]:
    """Of every matrix that is there before and after, in the order of the parameters."""
    found = weighed(subject, "changes")["changes"].values()
    return [WeightChange(**{**row, **_numbers(row)}) for stored in found for row in stored.value]


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    wanted = ("relative", "stable_rank", "effective_rank", "alpha_before", "alpha_after")
    return {key: known_number(row[key]) for key in wanted}


def _find(held: InHand) -> tuple[Any, dict[str, Any]]:
    after, before = held.tensor, held.start
    if (
        after is None
        or before is None
        or after.shape != before.shape
        or after.ndim < 2
        or not after.is_floating_point()
    ):
        return [], {}
    return [asdict(change) for change in _changes(held, before.to(after.device), after)], {}


def _changes(held: InHand, before: Tensor, after: Tensor) -> Iterator[WeightChange]:
    olds, news = (
        weight_matrices(held.name, tensor, module=held.owner, shapes=held.shapes) for tensor in (before, after)
    )
    for old, new in zip(olds, news, strict=True):
        if old.matrix is not None and new.matrix is not None and min(new.matrix.shape) > 1:
            yield _change(new.name, old.matrix, new.matrix)


def _change(name: str, old: Any, new: Any) -> WeightChange:
    moved = new.double() - old.double()
    difference = spectrum_of(moved)
    start, size = old.double().norm().item(), math.sqrt(difference.trace)
    bulk = marchenko_pastur_bulk(difference.eigenvalues, difference.rows, difference.columns) if size > 0 else None
    exponents = [power_law(spectrum_of(matrix).eigenvalues).alpha for matrix in (old, new)]
    # both are stored, and an adapter's change was multiplied, scaled and added before: each rounds once
    rounding = _rounding(old, old.dtype) + _rounding(new, new.dtype) + 3 * _rounding(moved, new.dtype)
    rounding += torch.finfo(torch.float64).eps * max(old.shape) * float(difference.eigenvalues.max())  # of the solver
    rank = int((difference.eigenvalues > rounding).sum())
    # at low rank what lies below is rounding, not noise of training: all of it stands out
    low_rank = rank < min(old.shape) // 2
    return WeightChange(
        name,
        relative=min(size / max(start, 1e-300), 1e300),
        smaller=min(difference.rows, difference.columns),
        rank=rank,
        stable_rank=difference.stable_rank if size > 0 else 0.0,
        effective_rank=difference.effective_rank if size > 0 else 0.0,
        spikes=rank if low_rank else bulk.spikes if bulk is not None and not bulk.reason else 0,
        alpha_before=exponents[0],
        alpha_after=exponents[1],
    )


def _rounding(matrix: Tensor, dtype: torch.dtype) -> float:
    """The largest eigenvalue that rounding a matrix once to a precision can write into a difference."""
    rows, columns = matrix.shape
    noise = torch.finfo(dtype).eps ** 2 / 12 * matrix.double().square().mean().item()
    return noise * (math.sqrt(rows) + math.sqrt(columns)) ** 2


of_weight = WeightPart(_find, version=2, uses_start=True)
