r"""Correction spends smoothness: as the first group's smoothing h vanishes, the second group's error grows as $1/h$."""

import torch
from torch import Tensor

from theodolite.construct.capacity import profile_units
from theodolite.core.law import Law
from theodolite.theory.capacity import gaussian

DRAWS, POINTS, UNITS = 150, 25, 24


def predict() -> float:
    return -1.0


def measure(box: float, *, generator: torch.Generator, groups: int = 2) -> Tensor:
    function = gaussian(1)
    t = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    made, affine = profile_units(function, groups=groups, units=UNITS, box=box, profiles=DRAWS, generator=generator)
    values = sum((group.values(t) for group in made), affine[:, :1] + affine[:, 1:] * (t + 1))
    return (values - function.profile(t)).square().mean(1)


law = Law(
    claim="A group of plain ReLUs cannot be corrected: the remainder's second derivative is then a sum of point masses. Units "
    "smoothed over h can, at a cost that grows as 1/h.",
    formula=r"E\|f-\hat f\|^2\propto\frac{1}{N^2}\int B_1^2=\frac{2}{3h}\,\frac{1}{N^2}",
    assumes={"a group that corrects another": {"groups": 1}},
    source="bresler2020, Theorem 2",
    predict=predict,
    measure=measure,
    cases=tuple({"box": h} for h in (0.02, 0.03, 0.04, 0.06, 0.09, 0.13, 0.18)),
    repeats=4,
    tolerance=0.3,
    exponent="box",
    quantity="mean squared error after two groups",
)
