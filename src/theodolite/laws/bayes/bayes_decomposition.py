r"""A deep linear network that fits its samples is sure along them; across, its variance is $\|x_\perp\|^2E\,\tau^2$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.experiments import Problem, prior_draws
from theodolite.theory.bayes import LinearNet, scale_moment

DRAWS, NORM2 = 12_000, 1.5
NEW = (0.6, -0.3, 1.0, 0.5, -1.2)  # a new input; the samples are the first unit vectors


def predict(sizes: tuple[int, ...], samples: int) -> float:
    across = sum(v * v for v in NEW[samples : sizes[0]])
    return across * scale_moment(LinearNet(sizes[0], sizes[1:]), 1, samples=samples, norm2=NORM2)


def measure(
    sizes: tuple[int, ...],
    samples: int,
    *,
    generator: torch.Generator,
    prior_variance: float = 1.0,
    noise_variance: float = 0.0,
) -> Estimate:
    problem = Problem(sizes, samples, norm2=NORM2, prior_variance=prior_variance, noise_variance=noise_variance)
    drawn = prior_draws(problem, draws=DRAWS, generator=generator)
    directions = torch.randn(DRAWS, sizes[0] - samples, generator=generator, dtype=torch.float64)
    answers = (0.5 * drawn.log_tau2).exp() * (directions @ torch.tensor(NEW[samples : sizes[0]], dtype=torch.float64))
    return drawn.posterior_mean(answers.square())


law = Law(
    claim="Noise-free samples fix the weights along them; across them the posterior is a Gaussian of random scale, the same "
    "in every direction, and its variance at a new input is the squared part across times the mean squared scale.",
    formula=r"\mathrm{Var}[f(x)\mid y]=\|x_\perp\|^2\,E[\tau^2\mid y],\quad E[f(x)\mid y]=\theta_*\cdot x",
    assumes={"no noise": {"noise_variance": 0.11}, "weights of variance 1 over fan-in": {"prior_variance": 1.1}},
    source="hanin2023",
    predict=predict,
    measure=measure,
    cases=({"sizes": (4, 3), "samples": 2}, {"sizes": (5, 4, 4), "samples": 3}, {"sizes": (5, 6, 6, 6), "samples": 2}),
    tolerance=0.1,  # exact law: some 3e4 effective draws of a squared Gaussian, 1 %, with room for its tail
    quantity="variance of the answer at a new input",
)
