r"""With a groups of N units, each fitted to what is left, the squared error falls as $N^{-a}$."""

import torch
from torch import Tensor

from theodolite.construct.representation import profile_units
from theodolite.law import Law
from theodolite.reading import Band
from theodolite.theory.representation import gaussian

DRAWS, POINTS = 600, 17


def predict(groups: int) -> Band:
    return Band.around(-groups, abs=0.5)


def measure(units: int, groups: int, *, generator: torch.Generator, fit: str = "what is left") -> Tensor:
    function = gaussian(1)
    t = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    alone = fit == "the function again"
    made, affine = profile_units(
        function, groups=1 if alone else groups, units=units * (groups if alone else 1), step=0.5, profiles=DRAWS,
        generator=generator,
    )  # fmt: skip
    values = sum((group.values(t) for group in made), affine[:, :1] + affine[:, 1:] * (t + 1))
    return (values - function.profile(t)).square().mean(1)


law = Law(
    claim="Groups of ever rougher units that correct one another represent a smooth function at any rate in 1/N.",
    formula=r"E\|f-\hat f\|^2=C_aN^{-a}\quad\text{with groups }\mathrm{SReLU}_{a-1},\dots,\mathrm{SReLU}_1,\mathrm{ReLU}",
    assumes={"each group fitted to what is left": {"fit": "the function again"}},
    source="bresler2020, Theorem 2",
    predict=predict,
    measure=measure,
    cases=tuple({"units": n, "groups": a} for a in (1, 2, 3) for n in (2, 3, 4, 6, 8, 12, 16)),
    full=tuple({"units": n, "groups": a} for a in (1, 2, 3) for n in (32, 64)),
    repeats=2,
    exponent="units",
    quantity="mean squared error",
)
