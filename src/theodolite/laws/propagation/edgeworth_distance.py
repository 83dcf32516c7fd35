r"""Outputs of random networks are $\frac{\kappa}{24}\max|He_3\varphi|$ from a Gaussian, their excess kurtosis being $\kappa$."""

import torch

from theodolite.core.law import Law
from theodolite.theory.propagation import edgeworth_distance, excess_kurtosis

NETS = 12_000


def measure(width: int, *, generator: torch.Generator, biased: float = 0.0) -> float:
    """The largest distance of distribution functions: given the last layer an output is Gaussian, so its own is known."""
    z = torch.randn(NETS, width, generator=generator, dtype=torch.float64)
    deviation = (2 * torch.relu(z + biased).square().mean(1)).sqrt()
    deviation = deviation / deviation.square().mean().sqrt()
    points = torch.linspace(0.3, 1.2, 19, dtype=torch.float64)
    mixed = torch.stack([torch.special.ndtr(t / deviation).mean() for t in points])
    return float((mixed - torch.special.ndtr(points)).abs().max())


law = Law(
    claim="To first order in one over the width, how far a random network's outputs are from Gaussian is their excess kurtosis "
    "times a number.",
    formula=r"\sup_t|P(z\le t)-\Phi(t)|=\frac{\kappa}{24}\max_z|z^3-3z|\varphi(z)\approx0.0229\,\kappa",
    assumes={"units that are on half of the time": {"biased": 0.3}, "layers wide": None},
    source="hanin2021; roberts2022",
    # one layer of ReLU: its mean square has variance 5/n
    predict=lambda width: edgeworth_distance(excess_kurtosis(1 + 5 / width)),
    measure=measure,
    cases=({"width": 40}, {"width": 60}, {"width": 100}),
    # the next order is 1 to 2 over the width, 4 % at 40; 4 x 12,000 networks know the distance to 2 %, three errors 6 %
    tolerance=0.12,
    repeats=4,
    quantity="distance to a Gaussian",
    along="width",
)
