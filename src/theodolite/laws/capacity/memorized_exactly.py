r"""Two hidden layers of $d_1d_2=4Nd_y$ ReLU, or $Nd_y$ hard-tanh, hold any N distinct points: written down, not trained."""

import math

import torch

from theodolite.construct.capacity import fit_error, in_float32, memorize
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity.memory_bounds import MemorizingActivation


def predict(points: int, inputs: int, outputs: int, activation: MemorizingActivation) -> Band:
    return Band(high=-7.0)  # weights grow to about 1e5 here, and rounding costs 1e-16 of that a few hundred times


def measure(
    points: int,
    inputs: int,
    outputs: int,
    activation: MemorizingActivation,
    *,
    generator: torch.Generator,
    repeated: bool = False,
    single: bool = False,
) -> float:
    x = torch.randn(points, inputs, generator=generator, dtype=torch.float64)
    y = 2 * torch.rand(points, outputs, generator=generator, dtype=torch.float64) - 1
    kept = slice(1, None) if repeated else slice(None)
    if repeated:
        x[0] = x[1]  # the same point with two targets: no function has both
    net = memorize(x[kept], y[kept], activation=activation)
    if single:
        net = in_float32(net, x, y)
    return math.log10(max(fit_error(net, x, y)[0], 1e-17))


law = Law(
    claim="A network whose weights are written down, of the theorem's widths, answers any targets at any distinct points.",
    formula=r"4\lfloor d_1/4\rfloor\lfloor d_2/4d_y\rfloor\ge N\ (\mathrm{ReLU}),\quad"
    r"4\lfloor d_1/2\rfloor\lfloor d_2/2d_y\rfloor\ge N\ (\mathrm{hard\ tanh})",
    assumes={"no point with two targets": {"repeated": True}, "double precision": {"single": True}},
    source="yun2019, Theorem 3.1",
    predict=predict,
    measure=measure,
    cases=(
        {"points": 300, "inputs": 10, "outputs": 1, "activation": "hardtanh"},
        {"points": 300, "inputs": 10, "outputs": 1, "activation": "relu"},
        {"points": 150, "inputs": 3, "outputs": 3, "activation": "relu"},
        {"points": 60, "inputs": 1, "outputs": 1, "activation": "hardtanh"},
    ),
    full=({"points": 10_000, "inputs": 20, "outputs": 1, "activation": "hardtanh"},),
    repeats=6,
    quantity="log10 of the largest error over all points",
)
