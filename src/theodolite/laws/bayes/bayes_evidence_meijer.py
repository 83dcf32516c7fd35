r"""The evidence of a deep linear network is a Meijer function $G^{L+1,0}_{0,L+1}$ of the squared norm of its fit."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate
from theodolite.measure.experiments import Problem, prior_draws
from theodolite.theory.bayes import LinearNet, log_evidence

DRAWS = 12_000


def predict(sizes: tuple[int, ...], samples: int, norm2: float) -> Band:
    found = log_evidence(LinearNet(sizes[0], sizes[1:]), samples=samples, norm2=norm2)
    return Band.around(found.value, abs=0.06)  # exact: of 8 x 12,000 draws the log of the mean is known to 0.005 or so


def measure(
    sizes: tuple[int, ...],
    samples: int,
    norm2: float,
    *,
    generator: torch.Generator,
    prior_variance: float = 1.0,
    noise_variance: float = 0.0,
) -> Estimate:
    problem = Problem(sizes, samples, norm2=norm2, prior_variance=prior_variance, noise_variance=noise_variance)
    return prior_draws(problem, draws=DRAWS, generator=generator).log_evidence()


law = Law(
    claim="The density of the targets under all deep linear networks of a shape has a closed form at any widths, depth and "
    "number of samples, compared here with the mean likelihood of networks drawn from the prior.",
    formula=r"Z=\frac{\det(XX^\top)^{-1/2}}{(\pi\|\theta_*\|^2)^{P/2}\prod_l\Gamma(n_l/2)}"
    r"\,G^{L+1,0}_{0,L+1}\left(\frac{\|\theta_*\|^2}{M}\,|\,\frac{P}{2},\frac{n_1}{2},\dots,\frac{n_L}{2}\right)",
    assumes={"no noise": {"noise_variance": 0.03}, "weights of variance 1 over fan-in": {"prior_variance": 1.1}},
    source="hanin2023",
    predict=predict,
    measure=measure,
    cases=(
        {"sizes": (3, 2), "samples": 1, "norm2": 0.7},
        {"sizes": (4, 3, 5), "samples": 2, "norm2": 1.1},
        {"sizes": (5, 4, 4, 4), "samples": 3, "norm2": 1.0},
    ),
    full=({"sizes": (12, 8, 8, 8), "samples": 6, "norm2": 0.8},),
    quantity="log evidence",
)
