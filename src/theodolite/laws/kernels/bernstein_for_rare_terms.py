r"""Rare terms of size R make a sum stray as far as Bernstein's $U+Rt/3$ allows, further than its variance alone would."""

import math

from scipy.optimize import brentq
from scipy.stats import binom

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.kernels import matrix_bernstein_tail

TERMS = 100_000


def predict(mean: float, level: float) -> Band:
    """Centerd terms of 1 with chance mean/n: numbers, which are matrices of dimensions 1 + 1."""
    variance = mean * (1 - mean / TERMS)

    def rest(t: float) -> float:
        return math.log(matrix_bernstein_tail(t, variance=variance, bound=1.0, dimensions=2)) - math.log(level)

    return Band(high=float(brentq(rest, math.sqrt(2 * variance), 40.0 + 20 * mean)))


def measure(mean: float, level: float, *, together: int = 1) -> float:
    """The deviation that such a sum reaches with this chance, exactly: it counts how many terms there are."""
    return together * float(binom.isf(level, TERMS, mean / TERMS / together)) - mean


law = Law(
    claim="Of many terms that are rarely there the sum has Poisson's tail and not a Gaussian one; the bound on single terms in "
    "Bernstein's inequality is what allows for it.",
    formula=r"2\exp\frac{-t^2/2}{U+Rt/3}=p\ \Rightarrow\ P\Big(\sum_jS_j\geq t\Big)\leq p",
    assumes={"terms of size at most R": {"together": 3}},
    source="tropp2015, Theorem 1.6.1",
    predict=predict,
    measure=measure,
    cases=({"mean": 1.0, "level": 1e-6}, {"mean": 0.3, "level": 1e-8}, {"mean": 5.0, "level": 1e-10}),
    quantity="deviation reached with so small a chance",
)
