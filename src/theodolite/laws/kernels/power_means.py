r"""Power means grow with their power: of errors that are Gaussian, $M_p=\sqrt2\,(\Gamma(\frac{p+1}2)/\sqrt\pi)^{1/p}$."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law

ERRORS = 40_000


def predict(errors: str, power: float) -> float:
    """The mean of order p in units of the scale: Gaussian, exponential, or all alike."""
    if errors == "equal":
        return 1.0
    if errors == "exponential":
        return float(math.gamma(power + 1) ** (1 / power))
    return float(math.sqrt(2) * (math.gamma((power + 1) / 2) / math.sqrt(math.pi)) ** (1 / power))


def measure(errors: str, power: float, *, generator: torch.Generator, weighting: float = 0.0) -> float:
    """The root of the mean p-th power over many errors; ``weighting`` counts each by that power of its own size."""
    sizes = _sizes(errors, generator)
    weights = sizes**weighting
    return float(((weights * sizes**power).sum() / weights.sum()) ** (1 / power))


def _sizes(errors: str, generator: torch.Generator) -> Tensor:
    if errors == "gaussian":
        return torch.randn(ERRORS, generator=generator, dtype=torch.float64).abs()
    if errors == "exponential":
        return -torch.rand(ERRORS, generator=generator, dtype=torch.float64).clamp(min=1e-300).log()
    return torch.ones(ERRORS, dtype=torch.float64)


law = Law(
    claim="The mean error over data is at most the root of their mean square, and so for any two powers; only errors that are "
    "all alike make the two equal. Bounds on training use it to go from a sum of errors to the loss.",
    formula=r"\left(\frac1m\sum_ja_j^p\right)^{1/p}\le\left(\frac1m\sum_ja_j^q\right)^{1/q}\quad(p<q)",
    assumes={"every datum counts alike": {"weighting": 0.1}},
    source="hardy1952, Theorem 16",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"errors": errors, "power": power}
        for errors, powers in (("gaussian", (0.5, 1.0, 2.0, 4.0)), ("exponential", (1.0, 2.0)), ("equal", (1.0, 2.0)))
        for power in powers
    ),
    tolerance=0.015,  # the fourth power of 8 x 40,000 Gaussian errors is known to 0.6 %, its root to 0.15
    quantity="power mean of the errors",
    along="power",
)
