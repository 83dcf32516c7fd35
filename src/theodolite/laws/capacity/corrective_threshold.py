"""The literal scheme diverges with groups narrower than a threshold, and converges geometrically with wider ones."""

from functools import cache

import torch
from torch import Tensor

from theodolite.construct.capacity import literal_group
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import corrective_contraction, dual_scale

SAMPLES, GROUPS = 8, 3
THETA = 2**0.5


def points() -> tuple[Tensor, Tensor]:
    return torch.eye(SAMPLES, dtype=torch.float64), torch.tensor([1.0, -1.0] * (SAMPLES // 2), dtype=torch.float64)


@cache
def threshold() -> float:
    x, y = points()
    scale = dual_scale(SAMPLES, THETA)
    return corrective_contraction(x, y, scale=scale, generator=torch.Generator().manual_seed(0)).threshold


def predict(units: int) -> Band:
    return Band(low=0.0) if units < threshold() else Band(high=0.0)


def measure(units: int, *, generator: torch.Generator, widen: float = 1.0) -> float:
    x, y = points()
    rest = y[:, None]
    for _ in range(GROUPS):
        rest = rest - literal_group(x, rest, units=units, theta=THETA / widen, generator=generator).outputs(x)
    return float(torch.log(rest.square().mean()) / GROUPS)


law = Law(
    claim="Groups narrower than the threshold make every residual larger than the last; wider ones shrink it geometrically.",
    formula=r"N_0^*=\frac{E\,|F|^2\eta^2\sum_j(t_j-T)_+^2-|Ky|^2}{|y|^2-|(I-K)y|^2}",
    assumes={"frequencies no wider than the separation asks": {"widen": 3.3}},
    source="bresler2020, Theorem 1",
    predict=predict,
    measure=measure,
    cases=({"units": 190}, {"units": 470}, {"units": 18_700}),
    full=({"units": 7_500},),
    repeats=24,
    quantity="growth of the logarithm of the squared residual, a group",
    along="units",
)
