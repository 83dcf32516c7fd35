r"""The length of the weights that no sample sees has posterior moments that are ratios of Meijer functions."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.experiments import Problem, prior_draws
from theodolite.theory.bayes import LinearNet, perpendicular_moment

DRAWS, NORM2 = 12_000, 1.2


def predict(sizes: tuple[int, ...], samples: int, order: int) -> float:
    return perpendicular_moment(LinearNet(sizes[0], sizes[1:]), order, samples=samples, norm2=NORM2)


def measure(
    sizes: tuple[int, ...],
    samples: int,
    order: int,
    *,
    generator: torch.Generator,
    prior_variance: float = 1.0,
    noise_variance: float = 0.0,
) -> Estimate:
    problem = Problem(sizes, samples, norm2=NORM2, prior_variance=prior_variance, noise_variance=noise_variance)
    drawn = prior_draws(problem, draws=DRAWS, generator=generator)
    return drawn.quantity("perpendicular" if order == 1 else "perpendicular squared")


law = Law(
    claim="Across the samples the posterior weights have a uniform direction and a squared length whose k-th moment is "
    "exact: the Meijer function with P/2 - k in place of P/2 over that of the evidence.",
    formula=r"E\|\theta_\perp\|^{2k}=\|\theta_*\|^{2k}\frac{\Gamma(\frac{n_0-P}{2}+k)}{\Gamma(\frac{n_0-P}{2})}"
    r"\frac{G(x|\frac{P}{2}-k,\frac{n_l}{2})}{G(x|\frac{P}{2},\frac{n_l}{2})}",
    assumes={"no noise": {"noise_variance": 0.12}, "weights of variance 1 over fan-in": {"prior_variance": 1.1}},
    source="hanin2023",
    predict=predict,
    measure=measure,
    cases=(
        {"sizes": (4, 3), "samples": 2, "order": 1},
        {"sizes": (5, 4, 4), "samples": 3, "order": 1},
        {"sizes": (5, 4, 4), "samples": 3, "order": 2},
    ),
    full=({"sizes": (12, 8, 8), "samples": 4, "order": 2},),
    tolerance=0.12,  # exact law: 8 x 12,000 weighted draws give the fourth moment to some 1.5 %, the second to 0.6 %
    quantity="moment of the squared length across the samples",
)
