"""The literal scheme diverges with groups narrower than a threshold, and converges geometrically with wider ones.

The threshold is bracketed: 1.5 times fewer units make the mean square of the residual larger, 1.5 times more make it smaller.
"""

from functools import cache

import torch
from torch import Tensor

from theodolite.construct.capacity import literal_group
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import corrective_contraction, dual_scale

SAMPLES, DRAWS = 8, 25
THETA = 2**0.5


def points() -> tuple[Tensor, Tensor]:
    return torch.eye(SAMPLES, dtype=torch.float64), torch.tensor([1.0, -1.0] * (SAMPLES // 2), dtype=torch.float64)


@cache
def threshold() -> float:
    x, y = points()
    scale = dual_scale(SAMPLES, THETA)
    return corrective_contraction(
        x, y, scale=scale, generator=torch.Generator().manual_seed(0), draws=100_000
    ).threshold


def measure(units: int, *, generator: torch.Generator, widen: float = 1.0) -> Tensor:
    """By how much a group of so many units makes the squared residual larger than the labels', as a share; many groups."""
    x, y = points()
    many = literal_group(x, y[:, None], units=DRAWS * units, theta=THETA / widen, generator=generator)
    return (y - many.shares(x, parts=DRAWS)).square().sum(1) / y.square().sum() - 1


law = Law(
    claim="Groups narrower than the threshold make the residual larger, by the same factor each; wider ones shrink it.",
    formula=r"N_0^*=\frac{E\,|F|^2\eta^2\sum_j(t_j-T)_+^2-|Ky|^2}{|y|^2-|(I-K)y|^2}",
    assumes={"frequencies no wider than the separation asks": {"widen": 1.5}},
    source="bresler2020, Theorem 1",
    predict=lambda units: Band(low=0.0) if units < threshold() else Band(high=0.0),
    measure=measure,
    cases=({"units": 500}, {"units": 1_250}, {"units": 2_800}),  # the threshold is 1,885
    full=({"units": 1_500}, {"units": 2_350}),
    repeats=8,
    quantity="growth of the squared residual by a group",
    along="units",
)
