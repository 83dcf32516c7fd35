r"""A third layer of flat tops makes labels exact though the values before it err by up to a quarter of their distance."""

import torch

from theodolite.construct.capacity import fit_error, in_float32, memorize
from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate
from theodolite.theory.capacity.memory_bounds import MemorizingActivation

DRAWS = 3


def measure(
    points: int,
    classes: int,
    activation: MemorizingActivation,
    error: float,
    *,
    generator: torch.Generator,
    beyond: bool = False,
    single: bool = False,
) -> Estimate:
    """The largest error seen in any of the draws: a bound is for the worst, and rounding has no mean worth the name."""

    error = 0.35 if beyond else error

    def error_of_one() -> float:
        x = torch.randn(points, 5, generator=generator, dtype=torch.float64)
        y = torch.randint(0, classes, (points,), generator=generator)
        y[:classes] = torch.arange(classes)
        net = memorize(x, y, activation=activation)
        if single:
            return in_float32(net, x, y).report.error
        with torch.no_grad():  # 4 times the share of the levels' distance: the slope of the third layer is 4 over it
            third = net[4]
            assert isinstance(third, torch.nn.Linear)
            third.bias.add_(4 * error)
        return fit_error(net, x, torch.nn.functional.one_hot(y, classes).double())[0]

    return Estimate(max(error_of_one() for _ in range(DRAWS)))


law = Law(
    claim="Classes take three hidden layers, the third of 4 ReLU (2 hard tanh) a class: flat tops that forgive errors of a "
    "quarter of the distance between the classes' levels.",
    formula=r"\tfrac12[\mathrm{ht}(4(t-\rho)/D+2)-\mathrm{ht}(4(t-\rho)/D-2)]=1\ \ (|t-\rho|\le D/4),\quad 0\ (\ge 3D/4)",
    assumes={
        "errors below a quarter of the distance of levels": {"beyond": True},
        "double precision": {"single": True},
    },
    source="yun2019, Proposition 3.2",
    # Slopes of 2 (classes - 1) magnify the rounding of the values, which grows with one over the smallest gap between
    # projected points, about points^2: width x 1e-16 x points^2, times a few.
    predict=lambda points, classes, activation, error: Band.around(0.0, abs=2 * (classes - 1) * 1e-11 * points**2),
    measure=measure,
    cases=(
        {"points": 1200, "classes": 10, "activation": "relu", "error": 0.0},
        {"points": 300, "classes": 10, "activation": "hardtanh", "error": 0.24},
        {"points": 200, "classes": 3, "activation": "relu", "error": -0.24},
    ),
    full=({"points": 10_000, "classes": 10, "activation": "relu", "error": 0.2},),
    repeats=1,
    quantity="largest error of the one-hot answers",
)
