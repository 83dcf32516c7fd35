r"""Under the prior of largest evidence $\|\theta_\perp\|^2\to\|\theta_*\|^2(1-\alpha)/\alpha$ at any depth and width."""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.experiments import Draws, Problem, tilted_draws

DRAWS, NORM2 = 1500, 2.0


def measure(
    inputs: int, samples: int, widths: tuple[int, ...], *, generator: torch.Generator, off: float = 1.0
) -> Estimate:
    seed = int(torch.randint(2**62, (1,), generator=generator))

    def drawn(log_variance: float) -> Draws:
        problem = Problem((inputs, *widths), samples, norm2=NORM2, prior_variance=math.exp(log_variance))
        return tilted_draws(problem, scale_ratio=1.0, draws=DRAWS, generator=torch.Generator().manual_seed(seed))

    low, high = -1.0, 3.0
    # the evidence has one maximum, where the mean fit is the number of samples; the same draws throughout
    for _ in range(16):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if drawn(middle).quantity("fit").value > samples else (low, middle)
    return drawn(low + math.log(off)).quantity("perpendicular")


law = Law(
    claim="Choosing the prior variance by evidence, deep linear networks of every depth and width end with the same "
    "posterior: the weights across the samples are as long, per direction, as those along them.",
    formula=r"\sigma_*^{2(L+1)}\to\|\theta_*\|^2/\alpha,\qquad\|\theta_\perp\|^2\to\|\theta_*\|^2\,\frac{1-\alpha}{\alpha},\quad\alpha=P/n_0",
    assumes={"prior variance of largest evidence": {"off": 1.1}, "samples and widths large": None},
    source="hanin2023",
    predict=lambda inputs, samples, widths: NORM2 * (1 - samples / inputs) / (samples / inputs),
    measure=measure,
    cases=(
        {"inputs": 200, "samples": 100, "widths": (300,)},
        {"inputs": 200, "samples": 100, "widths": (300, 300, 300)},
        {"inputs": 400, "samples": 100, "widths": (200, 200)},
    ),
    full=({"inputs": 1000, "samples": 500, "widths": (1500,) * 5},),
    tolerance=0.06,  # corrections of order L/P (0.5 % a layer at P = 100 was seen), and 8 repeats of 0.3 % each
    quantity="mean squared length across the samples",
    erratum="Lecture notes put the length across the samples at |theta*|^2 / alpha; that is the length of all the weights, "
    "and the part across them is 1 - alpha of it.",
    refuted=lambda inputs, samples, widths: NORM2 / (samples / inputs),
)
