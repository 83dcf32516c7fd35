r"""A third layer of flat tops makes labels exact though the values before it err by up to a quarter of their distance."""

import math

import torch

from theodolite.construct.capacity import fit_error, in_float32, memorize
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity.memory_bounds import MemorizingActivation


def predict(points: int, classes: int, activation: MemorizingActivation, error: float) -> Band:
    return Band(high=-7.0)  # rounding of slopes up to 2 (classes - 1) times the rounding of the values


def measure(
    points: int,
    classes: int,
    activation: MemorizingActivation,
    error: float,
    *,
    generator: torch.Generator,
    beyond: bool = False,
    single: bool = False,
) -> float:
    x = torch.randn(points, 5, generator=generator, dtype=torch.float64)
    y = torch.randint(0, classes, (points,), generator=generator)
    y[:classes] = torch.arange(classes)
    net = memorize(x, y, activation=activation)
    if single:
        return math.log10(max(in_float32(net, x, y).report.error, 1e-17))
    with torch.no_grad():  # 4 times the share of the levels' distance: the slope of the third layer is 4 over it
        third = net[4]
        assert isinstance(third, torch.nn.Linear)
        third.bias.add_(4 * (0.35 if beyond else error))
    return math.log10(max(fit_error(net, x, torch.nn.functional.one_hot(y, classes).double())[0], 1e-17))


law = Law(
    claim="Classes take three hidden layers, the third of 4 ReLU (2 hard tanh) a class: flat tops that forgive errors of a "
    "quarter of the distance between the classes' levels.",
    formula=r"\tfrac12[\mathrm{ht}(4(t-\rho)/D+2)-\mathrm{ht}(4(t-\rho)/D-2)]=1\ \ (|t-\rho|\le D/4),\quad 0\ (\ge 3D/4)",
    assumes={
        "errors below a quarter of the distance of levels": {"beyond": True},
        "double precision": {"single": True},
    },
    source="yun2019, Proposition 3.2",
    predict=predict,
    measure=measure,
    cases=(
        {"points": 1200, "classes": 10, "activation": "relu", "error": 0.0},
        {"points": 300, "classes": 10, "activation": "hardtanh", "error": 0.24},
        {"points": 200, "classes": 3, "activation": "relu", "error": -0.24},
    ),
    full=({"points": 10_000, "classes": 10, "activation": "relu", "error": 0.2},),
    repeats=3,
    quantity="log10 of the largest error of the one-hot answers",
)
