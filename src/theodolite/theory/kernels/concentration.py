"""How far sums of independent random matrices stray from their mean: bounds on tails."""

import math

from theodolite.core.checks import at_least, finite, not_negative, positive


def matrix_bernstein_tail(deviation: float, *, variance: float, bound: float, dimensions: int) -> float:
    r"""$P(\|\sum S_j\|\geq t)\leq(d_1+d_2)\exp\frac{-t^2/2}{U+Rt/3}$ for independent centered matrices with $\|S_j\|\leq R$.

    ``variance`` is $U=\max(\|\sum E SS^\top\|,\|\sum E S^\top S\|)$, ``bound`` R, ``dimensions`` $d_1+d_2$. At most 1.
    Source: tropp2015, Theorem 1.6.1.

    >>> matrix_bernstein_tail(0.0, variance=1.0, bound=1.0, dimensions=4)
    1.0
    """
    not_negative(deviation=deviation, variance=variance)
    positive(bound=bound)
    at_least(1, dimensions=dimensions)
    return min(1.0, dimensions * math.exp(-0.5 * deviation * deviation / (variance + bound * deviation / 3)))


def matrix_chernoff_tail(relative_excess: float, *, mean: float, bound: float, side: int) -> float:
    r"""$P(\lambda_{\max}(\sum X_k)\geq(1+\epsilon)\mu)\leq m\,[e^\epsilon/(1+\epsilon)^{1+\epsilon}]^{\mu/R}$.

    For independent positive semidefinite m x m matrices with $\lambda_{\max}(X_k)\leq R$ surely and
    $\mu=\lambda_{\max}(E\sum X_k)$. At most 1. Source: tropp2015, Theorem 5.1.1.

    >>> matrix_chernoff_tail(0.0, mean=1.0, bound=0.1, side=3)
    1.0
    """
    not_negative(relative_excess=relative_excess)
    finite(mean=mean)
    positive(bound=bound)
    at_least(1, side=side)
    exponent = relative_excess - (1 + relative_excess) * math.log1p(relative_excess)
    return min(1.0, side * math.exp(exponent * mean / bound))


def chebyshev_tail(deviations: float) -> float:
    r"""$P(X\geq E X+k\sqrt{\mathrm{Var}X})\leq1/(1+k^2)$, Cantelli's one-sided form of Chebyshev's inequality.

    >>> chebyshev_tail(2.0)
    0.2
    """
    not_negative(deviations=deviations)
    return 1.0 / (1.0 + deviations**2)
