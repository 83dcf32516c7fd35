r"""The tangent kernel of one hidden layer of n units fluctuates with relative variance $3/n$ for ReLU, $1/n$ if linear."""

from functools import partial

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, tangent_kernels
from theodolite.theory.kernels import one_hidden_layer_spread

NETS = 3000


def measure(slope: float, width: int, *, generator: torch.Generator, copies: int = 1) -> Tensor:
    leaky = partial(torch.nn.functional.leaky_relu, negative_slope=slope)
    ensemble = Ensemble(leaky, (width,), weight_variance=2 / (1 + slope**2), copies=copies)
    rate = ensemble.weight_variance
    kernels = tangent_kernels(ensemble, torch.ones(1, 1), nets=NETS, weight_rate=rate, generator=generator)
    relative = kernels.sum((1, 2))[:, 0, 0].double()
    relative = relative / relative.mean() - 1
    return width * relative.square() * (NETS / (NETS - 1))


law = Law(
    claim="From one random network to the next the tangent kernel spreads as one over the square root of the width, with "
    "a known constant: it becomes deterministic only as the width grows.",
    formula=r"n\,\mathrm{Var}\,\Theta/(E\,\Theta)^2=3\;(\mathrm{ReLU}),\quad1\;(\mathrm{linear})",
    assumes={"units independent": {"copies": 2}},
    source="hanin2020; roberts2022, chapter 8",
    predict=lambda slope, width: one_hidden_layer_spread(slope),
    measure=measure,
    cases=(
        {"slope": 0.0, "width": 16},
        {"slope": 0.0, "width": 64},
        {"slope": 1.0, "width": 16},
        {"slope": 2.0, "width": 16},
    ),
    full=({"slope": 0.3, "width": 32},),
    tolerance=0.12,  # exact law: 8 x 3000 kernels know a variance to about 1.5 % (kurtosis up to 6), eight times that
    quantity="n times the relative variance of the tangent kernel",
)
