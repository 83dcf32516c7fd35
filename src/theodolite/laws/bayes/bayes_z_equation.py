r"""In large deep linear networks the posterior scale solves $\kappa z=\sigma^{2(L+1)}\prod_l(1+\frac{P}{n_l}(\frac{1}{z}-1))$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.experiments import Problem, tilted_draws
from theodolite.theory.bayes import LinearNet, posterior_ratio

DRAWS, NORM2 = 4000, 2.0


def predict(inputs: int, samples: int, widths: tuple[int, ...]) -> float:
    z = posterior_ratio(LinearNet(inputs, widths), samples=samples, norm2=NORM2)
    return NORM2 * (inputs - samples) / samples * z


def measure(
    inputs: int,
    samples: int,
    widths: tuple[int, ...],
    *,
    generator: torch.Generator,
    prior_variance: float = 1.0,
    smaller: int = 1,
) -> Estimate:
    sizes = tuple(n // smaller for n in (inputs, *widths))
    problem = Problem(sizes, samples // smaller, norm2=NORM2, prior_variance=prior_variance)
    # Where to draw only steers, any ratio is right; a good one is found by halving, from what few draws say of the scale
    own, low, high = NORM2 * (sizes[0] / problem.samples - 1), 0.02, 50.0
    for _ in range(12):
        ratio = (low * high) ** 0.5
        few = tilted_draws(problem, scale_ratio=ratio, draws=300, generator=generator)
        low, high = (ratio, high) if few.quantity("perpendicular").value > ratio * own else (low, ratio)
    return tilted_draws(problem, scale_ratio=ratio, draws=DRAWS, generator=generator).quantity("perpendicular")


law = Law(
    claim="As samples and widths grow together the length of the weights across the samples is fixed by a root z: 1 where "
    "the samples outvote the prior, as they do at large depth, and the prior's own value in a shallow, very wide network.",
    formula=r"\|\theta_\perp\|^2\to\frac{1-\alpha}{\alpha}\|\theta_*\|^2z,\quad "
    r"\kappa z=\sigma^{2(L+1)}\prod_l\left(1+\tfrac{P}{n_l}(\tfrac{1}{z}-1)\right),\quad\kappa=\|\theta_*\|^2/\alpha",
    assumes={
        "weights of variance 1 over fan-in": {"prior_variance": 1.043},
        "samples and widths large": {"smaller": 13},
    },
    source="hanin2023",
    predict=predict,
    measure=measure,
    cases=(
        {"inputs": 400, "samples": 200, "widths": (300, 300)},
        {"inputs": 400, "samples": 200, "widths": (300,) * 8},
        {"inputs": 400, "samples": 100, "widths": (200, 400)},
    ),
    full=({"inputs": 2000, "samples": 1000, "widths": (2000,) * 20},),
    tolerance=0.02,  # corrections of order 1/P: 0.2 % and 0.3 % in the first two cases; draws add some 0.1 %
    quantity="mean squared length across the samples",
)
