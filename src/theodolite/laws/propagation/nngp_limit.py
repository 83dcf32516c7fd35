r"""A random network's output tends to a Gaussian as $1/n$ in its width n, not faster and not slower."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.experiments import Ensemble, conditional_chain

HIDDEN = 3
NETS = 4000


def distance(variances: Tensor) -> float:
    """The largest difference between the mean over networks of the output's distribution function and the Gaussian's."""
    grid = torch.linspace(0.05, 3.0, 60, dtype=torch.float64)
    given = torch.special.ndtr(grid / variances.double().clamp(min=1e-12).sqrt().unsqueeze(1))  # (nets, grid)
    return float((given.mean(0) - torch.special.ndtr(grid)).abs().max())


def measure(hidden_layers: int, width: int, *, generator: torch.Generator, bottleneck: int = 0) -> Estimate:
    widths = (bottleneck or width, *(width,) * (hidden_layers - 1))
    ensemble = Ensemble(torch.relu, widths, weight_variance=2.0)
    last = conditional_chain(ensemble, torch.eye(1, dtype=torch.float32), nets=NETS, generator=generator)[:, -1, 0, 0]
    parts = torch.tensor([distance(part) for part in last.chunk(10)])
    return Estimate(distance(last), float(parts.std()) / 10**0.5)


law = Law(
    claim="The distance (Kolmogorov-Smirnov) between the output of a random ReLU network and a Gaussian falls as one over "
    "the width of its hidden layers, all of which must grow.",
    formula=r"\sup_t|P(z\leq t)-\Phi(t/\sqrt{K})|\sim\frac{c}{n}",
    assumes={
        "all hidden layers widen": {"bottleneck": 2},
        "an activation of polynomial growth, continuous almost everywhere": None,
    },
    source="hanin2021; matthews2018; neal1996",
    predict=lambda **case: -1.0,
    measure=measure,
    cases=tuple({"hidden_layers": HIDDEN, "width": width} for width in (16, 22, 32, 45, 64, 90, 128)),
    full=({"hidden_layers": HIDDEN, "width": 256},),
    tolerance=0.15,  # the next order in 1/n bends the slope by some 0.03, and the error of the fit is about 0.02
    quantity="distance of the output to a Gaussian",
    exponent="width",
)
