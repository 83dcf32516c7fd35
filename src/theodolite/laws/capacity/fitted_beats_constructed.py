"""Least squares over the output weights is never worse than the weights that a theorem writes down for the same units."""

import torch

from theodolite.construct.capacity import least_squares, profile_units
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import gaussian

POINTS = 60


def predict(units: int, groups: int) -> Band:
    return Band(high=0.0)


def measure(units: int, groups: int, *, generator: torch.Generator, features: str = "the same") -> float:
    function = gaussian(1)
    t = torch.linspace(-1, 1, POINTS, dtype=torch.float64)

    def drawn() -> tuple[torch.Tensor, torch.Tensor]:
        made, affine = profile_units(function, groups=groups, units=units, box=0.5, profiles=1, generator=generator)
        one = torch.ones_like(t)
        columns = [torch.ones(POINTS, 1, dtype=t.dtype), (t + 1)[:, None]]
        for group in made:
            alone = type(group)(group.threshold.T, torch.ones_like(group.threshold.T), group.order, group.box)
            columns.append(alone.values(t).T)
        constructed = sum(group.values(t)[0] for group in made) + affine[0, 0] * one + affine[0, 1] * (t + 1)
        return torch.cat(columns, 1), constructed

    target = function.profile(t)
    matrix, constructed = drawn()
    weights = least_squares(matrix, target[:, None])[:, 0]
    if features == "others":
        matrix, constructed = drawn()
    fitted = (matrix @ weights - target).square().mean()
    return float(torch.log10(fitted / (constructed - target).square().mean()))


law = Law(
    claim="That good weights exist is enough: least squares, or gradient descent to its end, finds weights at least as good.",
    formula=r"\min_b|\Phi b-f|^2\le|\Phi b_0-f|^2",
    assumes={"weights fitted to these units": {"features": "others"}},
    source="bresler2020",
    predict=predict,
    measure=measure,
    cases=({"units": 10, "groups": 1}, {"units": 30, "groups": 1}, {"units": 10, "groups": 2}),
    repeats=12,
    quantity="powers of ten between squared errors, fitted over constructed",
)
