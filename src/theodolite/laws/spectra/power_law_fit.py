r"""Clauset's fit finds the exponent of a power-law tail, threshold unknown, with a bias of order 1/n."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import power_law

COUNT = 1000


def measure(alpha: float, *, generator: torch.Generator, tail: str = "power") -> list[float]:
    shares = 1 - torch.rand(25, COUNT, generator=generator, dtype=torch.float64)
    values = shares ** (-1 / (alpha - 1)) if tail == "power" else 1 - shares.log()
    return [power_law(row).alpha for row in values]


law = Law(
    claim="The fitted exponent of a sample from a power law is its exponent.",
    formula=r"\hat\alpha=1+n\Big/\sum_j\log\frac{x_j}{x_{\min}},\qquad E\hat\alpha=\alpha+O(1/n)",
    assumes={"the tail is a power law": {"tail": "exponential"}},
    source="clauset2009",
    # The maximum-likelihood exponent over n values has bias (alpha - 1)/n, and the search keeps now and then a small
    # tail: 10/n is allowed. The mean of 100 fits errs by 1.5 (alpha - 1)/sqrt(100 n), three times that either way.
    predict=lambda alpha: Band.around(alpha, abs=(alpha - 1) * (10 / COUNT + 6 * 1.5 / (100 * COUNT) ** 0.5)),
    measure=measure,
    cases=tuple({"alpha": alpha} for alpha in (2.0, 3.0, 4.0)),
    repeats=4,
    quantity="fitted exponent",
    along="alpha",
)
