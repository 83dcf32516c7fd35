r"""Two hidden layers of $d_1d_2=4Nd_y$ ReLU, or $Nd_y$ hard-tanh, hold any N distinct points: written down, not trained."""

import torch

from theodolite.construct.capacity import fit_error, in_float32, memorize
from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate
from theodolite.theory.capacity.memory_bounds import MemorizingActivation

DRAWS = 6


def measure(
    points: int,
    inputs: int,
    outputs: int,
    activation: MemorizingActivation,
    *,
    generator: torch.Generator,
    repeated: bool = False,
    single: bool = False,
) -> Estimate:
    """The largest error seen in any of the draws: a bound is for the worst, and rounding has no mean worth the name."""

    def error_of_one() -> float:
        x = torch.randn(points, inputs, generator=generator, dtype=torch.float64)
        y = 2 * torch.rand(points, outputs, generator=generator, dtype=torch.float64) - 1
        kept = slice(1, None) if repeated else slice(None)
        if repeated:
            x[0] = x[1]  # the same point with two targets: no function has both
        net = memorize(x[kept], y[kept], activation=activation)
        if single:
            net = in_float32(net, x, y)
        return fit_error(net, x, y)[0]

    return Estimate(max(error_of_one() for _ in range(DRAWS)))


law = Law(
    claim="A network whose weights are written down, of the theorem's widths, answers any targets at any distinct points.",
    formula=r"4\lfloor d_1/4\rfloor\lfloor d_2/4d_y\rfloor\ge N\ (\mathrm{ReLU}),\quad "
    r"4\lfloor d_1/2\rfloor\lfloor d_2/2d_y\rfloor\ge N\ (\mathrm{hard\ tanh})",
    assumes={"no point with two targets": {"repeated": True}, "double precision": {"single": True}},
    source="yun2019, Theorem 3.1",
    # Slopes are one over the smallest gap between projected points, about points^2; rounding costs 1e-16 of that in each
    # of some ten to a hundred terms, in three layers.
    predict=lambda points, inputs, outputs, activation: Band.around(0.0, abs=1e-11 * points**2),
    measure=measure,
    cases=(
        {"points": 300, "inputs": 10, "outputs": 1, "activation": "hardtanh"},
        {"points": 300, "inputs": 10, "outputs": 1, "activation": "relu"},
        {"points": 150, "inputs": 3, "outputs": 3, "activation": "relu"},
        {"points": 60, "inputs": 1, "outputs": 1, "activation": "hardtanh"},
    ),
    full=({"points": 10_000, "inputs": 20, "outputs": 1, "activation": "hardtanh"},),
    repeats=1,
    quantity="largest error over all points",
)
