r"""With a groups of N units, each fitted to what is left, the squared error falls as $N^{-a}$."""

import math

import torch
from torch import Tensor

from theodolite.construct.capacity import profile_units
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import RadialFunction

DRAWS, POINTS = 600, 17


def predict(groups: int, dimension: int = 1) -> Band:
    return Band.around(-groups, abs=0.5)


def measure(
    units: int, groups: int, dimension: int = 1, *, generator: torch.Generator, fit: str = "what is left"
) -> Tensor:
    """The error on [-1, 1], or on points of the unit disc, of so many units for each direction."""
    alone = fit == "the function again"
    bell = RadialFunction(lambda rho: (2 * math.pi) ** (dimension / 2) * torch.exp(-rho.square() / 2), dimension)
    x = torch.linspace(-1, 1, POINTS, dtype=torch.float64)[:, None]
    if dimension == 2:
        angle = 2.4 * torch.arange(POINTS, dtype=torch.float64)  # the golden spiral
        x = (x + 1) / 2 * torch.stack([torch.cos(angle), torch.sin(angle)], 1)
    angles = torch.arange(16 if dimension == 2 else 1, dtype=torch.float64) * (math.pi / 16)
    # the rule of 32 points errs by J_32(8), 1e-17
    directions = torch.stack([angles.cos(), angles.sin()], 1)[:, :dimension]
    draws = DRAWS // len(directions)
    made, affine = profile_units(
        bell,
        groups=1 if alone else groups,
        units=units * (groups if alone else 1),
        box=0.5,
        profiles=draws * len(directions),
        generator=generator,
    )
    t = (directions @ x.T).repeat(draws, 1)  # (profiles, points)
    values = sum((group.values(t[:, None]) for group in made), affine[:, :1] + affine[:, 1:] * (t + 1))
    mean = values.reshape(draws, len(directions), POINTS).mean(1)
    return (mean - torch.exp(-x.square().sum(1) / 2)).square().mean(1)


law = Law(
    claim="Groups of ever rougher units that correct one another represent a smooth function at any rate in 1/N.",
    formula=r"E\|f-\hat f\|^2=C_aN^{-a}\quad\text{with groups }\mathrm{SReLU}_{a-1},\dots,\mathrm{SReLU}_1,\mathrm{ReLU}",
    assumes={"each group fitted to what is left": {"fit": "the function again"}},
    source="bresler2020, Theorem 2",
    predict=predict,
    measure=measure,
    cases=tuple({"units": n, "groups": a} for a in (1, 2, 3) for n in (2, 3, 4, 6, 8, 12, 16)),
    full=tuple({"units": n, "groups": a} for a in (1, 2, 3) for n in (32, 64))
    + tuple({"units": n, "groups": a, "dimension": 2} for a in (1, 2, 3) for n in (2, 3, 4, 6, 8, 12, 16)),
    repeats=2,
    exponent="units",
    quantity="mean squared error",
)
