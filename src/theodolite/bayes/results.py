"""What both posteriors share: predictions, a choice of shapes, and the samples as tensors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.core.reading import Estimate


@dataclass(frozen=True)
class Prediction:
    """At each new input the posterior mean and variance, and ``samples`` of the whole function there, (draws, inputs)."""

    mean: Tensor
    variance: Tensor
    samples: Tensor


@dataclass(frozen=True)
class Candidate:
    """One shape: its hidden ``widths``, prior variance, log evidence, and its ``posterior_weight`` among the shapes compared."""

    widths: tuple[int, ...]
    prior_variance: float
    evidence: Estimate
    posterior_weight: float


@dataclass(frozen=True)
class Selection:
    """Shapes by falling evidence. ``bound`` is the log evidence that no prior on the scale can exceed."""

    candidates: tuple[Candidate, ...]
    bound: float

    @property
    def best(self) -> Candidate:
        """The shape of largest evidence."""
        return self.candidates[0]

    def __str__(self) -> str:
        lines = [f"{'hidden layers':>13} {'width':>6} {'prior variance':>14} {'log evidence':>13} {'weight':>7}"]
        for row in self.candidates:
            width = str(row.widths[0]) if row.widths else "-"
            lines.append(
                f"{len(row.widths):>13} {width:>6} {row.prior_variance:>14.5g} {row.evidence.value:>13.4f} "
                f"{row.posterior_weight:>7.3f}"
            )
        return "\n".join([*lines, f"no prior on the scale exceeds {self.bound:.4f}"])


def selection(found: Sequence[tuple[tuple[int, ...], float, Estimate]], bound: float) -> Selection:
    """Shapes, prior variances and evidences, in order and weighted."""
    if not found:
        raise InputError("expected at least one depth and one width, got none; pass depths=(0, 1, 2), say")
    top = max(row[2].value for row in found)
    total = sum(math.exp(row[2].value - top) for row in found)
    rows = [Candidate(*row, math.exp(row[2].value - top) / total) for row in found]
    return Selection(tuple(sorted(rows, key=lambda row: -row.evidence.value)), bound)


def new_inputs(x: Any, like: Tensor) -> Tensor:
    """Inputs to predict at, with the features, device and precision of those seen."""
    rows = torch.as_tensor(x).to(like)
    if rows.ndim != 2 or rows.shape[1] != like.shape[1]:
        raise InputError(
            f"expected inputs of shape (samples, {like.shape[1]}), got {tuple(rows.shape)}; use the features of the data"
        )
    return rows


def samples_of(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Inputs (P, features) and targets (P) in double precision on the inputs' device."""
    x, y = torch.as_tensor(x).detach().double(), torch.as_tensor(y).detach()
    y = y.to(x).squeeze(-1) if y.ndim > 1 else y.to(x)
    if x.ndim != 2 or y.ndim != 1 or len(x) != len(y) or not len(y):
        raise InputError(
            f"expected inputs (samples, features) and one target a sample, got {tuple(x.shape)} and {tuple(y.shape)}; of "
            "several outputs take one at a time"
        )
    if not bool(x.isfinite().all() and y.isfinite().all()):
        raise InputError("expected finite inputs and targets, got others; drop the samples that are not")
    return x, y
