r"""With noise on the targets the evidence of a deep linear network is one integral over its scale, whatever the depth."""

import numpy as np
import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate
from theodolite.measure.experiments import Problem, prior_draws
from theodolite.theory.bayes import LinearNet, noisy_scale_posterior

DRAWS, NORM2 = 12_000, 2.0


def predict(sizes: tuple[int, ...], samples: int, noise_variance: float) -> Band:
    spectrum, squares = np.ones(samples), np.full(samples, NORM2 / samples)
    found = noisy_scale_posterior(LinearNet(sizes[0], sizes[1:]), spectrum, squares, noise_variance=noise_variance)
    return Band.around(found.evidence.value, abs=0.05)  # exact: 8 x 12,000 draws know the log of the mean to 0.005


def measure(
    sizes: tuple[int, ...],
    samples: int,
    noise_variance: float,
    *,
    generator: torch.Generator,
    louder: float = 1.0,
    prior_variance: float = 1.0,
) -> Estimate:
    problem = Problem(
        sizes, samples, norm2=NORM2, prior_variance=prior_variance, noise_variance=louder * noise_variance
    )
    return prior_draws(problem, draws=DRAWS, generator=generator).log_evidence()


law = Law(
    claim="Given the scale of its weights a deep linear network is Bayesian linear regression, so that with Gaussian noise only "
    "an integral over the scale is left, whose prior density is a Meijer function.",
    formula=r"Z=\int p(\tau)\,N(y;0,\tau^2XX^\top+\nu)\,d\tau,\quad "
    r"\tau^2=\frac{\sigma^2}{n_0}\prod_l\frac{\sigma^2}{n_l}\chi^2_{n_l}",
    assumes={
        "noise of the variance named": {"louder": 2.0},
        "weights of variance 1 over fan-in": {"prior_variance": 1.3},
    },
    source="hanin2023",
    predict=predict,
    measure=measure,
    cases=(
        {"sizes": (4, 3), "samples": 3, "noise_variance": 0.5},
        {"sizes": (5, 4, 4), "samples": 5, "noise_variance": 0.2},
        {"sizes": (12, 8, 8, 8), "samples": 10, "noise_variance": 0.1},
    ),
    quantity="log evidence",
)
