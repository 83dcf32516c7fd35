"""What the singular values of two matrices say about those of their product."""

import math
from collections.abc import Sequence

import numpy as np

from theodolite.core.checks import at_least, not_negative, positive


def endpoint_exponent(kappa: float, rank: int) -> float:
    r"""The exponent of the power law through the first and the last eigenvalue: $2\log\kappa/\log r$.

    >>> endpoint_exponent(10.0, 100)
    1.0
    """
    positive(kappa=kappa)
    at_least(2, rank=rank)  # one eigenvalue has no decay
    return 2 * math.log(kappa) / math.log(rank)


def product_bound_applies(inner: int, rank_left: int, rank_right: int) -> bool:
    r"""Whether $\kappa(AB)\le\kappa(A)\kappa(B)$ may be used, over non-zero singular values; A is n by p, B is p by q.

    Only where A has rank p or B has rank p (``inner``): then nothing that B can produce is lost in the kernel of A, or
    the same of the transposes. For matrices of full rank it fails exactly when $p>n$ and $p>q$: few samples, wide
    inputs, fewer outputs.

    >>> product_bound_applies(100, 30, 20), product_bound_applies(30, 30, 20)
    (False, True)
    """
    at_least(0, inner=inner, rank_left=rank_left, rank_right=rank_right)
    return max(rank_left, rank_right) >= inner


def condition_number_bound(kappa_left: float, kappa_right: float) -> float:
    r"""$\kappa(AB)\le\kappa(A)\kappa(B)$ where `product_bound_applies`; reached where the singular bases align.

    >>> condition_number_bound(2.0, 3.0)
    6.0
    """
    return kappa_left * kappa_right


def feature_exponent_bound(kappa_data: float, weight_exponent: float, *, weight_rank: int, feature_rank: int) -> float:
    r"""$a_Y\le2\log_{r_Y}\kappa(X)+a_W\log_{r_Y}r_W$ for the end-point exponents of $Y=XW$.

    The exponents are those of `endpoint_exponent`, not fitted ones, and `product_bound_applies` must hold.

    >>> feature_exponent_bound(1.0, 0.7, weight_rank=50, feature_rank=50)
    0.7
    """
    positive(kappa_data=kappa_data)
    at_least(1, weight_rank=weight_rank, feature_rank=feature_rank)
    base = math.log(feature_rank)
    return 2 * math.log(kappa_data) / base + weight_exponent * (math.log(weight_rank) / base)


def two_layer_exponent_bound(
    hidden_exponent: float, weight_exponent: float, *, hidden_rank: int, weight_rank: int, rank: int
) -> float:
    r"""$a_Z\le a_{\varphi(Y)}\log_{r_Z}r_{\varphi(Y)}+a_{W_2}\log_{r_Z}r_{W_2}$ for $Z=\varphi(Y)W_2$, end-point exponents.

    Nothing is assumed of the nonlinearity: its output is a matrix like any other, whose rank must be measured.

    >>> two_layer_exponent_bound(1.0, 0.5, hidden_rank=20, weight_rank=20, rank=20)
    1.5
    """
    at_least(1, hidden_rank=hidden_rank, weight_rank=weight_rank)
    at_least(2, rank=rank)
    return (hidden_exponent * math.log(hidden_rank) + weight_exponent * math.log(weight_rank)) / math.log(rank)


def horn_bounds(left: Sequence[float], right: Sequence[float]) -> tuple[float, ...]:
    r"""$\sum_{i\le k}\log\sigma_i(AB)\le\sum_{i\le k}(\log\sigma_i(A)+\log\sigma_i(B))$ for every k: the right-hand sides.

    Holds for matrices of any shapes and ranks, unlike the bound on condition numbers. As many values as the shorter of
    the two spectra has; a zero singular value gives minus infinity from there on. Source: horn1950.

    >>> [round(value, 4) for value in horn_bounds([2.0, 1.0], [3.0, 0.5])]
    [1.7918, 1.0986]
    """
    not_negative(left=np.asarray(left), right=np.asarray(right))
    a, b = _descending(left), _descending(right)
    count = min(a.size, b.size)
    with np.errstate(divide="ignore"):
        return tuple(np.cumsum(np.log(a[:count]) + np.log(b[:count])).tolist())


def majorization_slack(
    product_values: Sequence[float], left: Sequence[float], right: Sequence[float]
) -> tuple[float, ...]:
    r"""By how much `horn_bounds` exceed the cumulated logs of the product's singular values: never negative.

    Zero everywhere where the singular bases align. Only as far as all three spectra are positive.

    >>> [round(slack, 12) for slack in majorization_slack([6.0, 0.5], [2.0, 1.0], [3.0, 0.5])]
    [0.0, 0.0]
    """
    not_negative(product_values=np.asarray(product_values), left=np.asarray(left), right=np.asarray(right))
    values = [_descending(sequence) for sequence in (product_values, left, right)]
    count = min(int((v > 0).sum()) for v in values)
    logs = [np.cumsum(np.log(v[:count])) for v in values]
    return tuple((logs[1] + logs[2] - logs[0]).tolist())


def steering_gain_bounds(singular_values: Sequence[float], dimension: int) -> tuple[float, float]:
    r"""$|W^\top v|/|v|$ lies between these for every direction v of a space of ``dimension`` d: $[\sigma_d,\sigma_1]$.

    The lower end is zero where W has fewer than d non-zero singular values: some directions are lost.

    >>> steering_gain_bounds([3.0, 1.0], 2), steering_gain_bounds([3.0, 1.0], 5)
    ((1.0, 3.0), (0.0, 3.0))
    """
    at_least(1, dimension=dimension)
    not_negative(singular_values=np.asarray(singular_values))
    values = _descending(singular_values)
    return (float(values[dimension - 1]) if dimension <= values.size else 0.0, float(values[0]))


def random_direction_gain(singular_values: Sequence[float], dimension: int) -> float:
    r"""The root mean square of $|W^\top v|/|v|$ over random directions: $\|W\|_F/\sqrt d$.

    >>> random_direction_gain([3.0, 4.0], 25)
    1.0
    """
    at_least(1, dimension=dimension)
    not_negative(singular_values=np.asarray(singular_values))
    return float(np.sqrt(np.square(_descending(singular_values)).sum() / dimension))


def _descending(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.sort(np.asarray(values, dtype=np.float64).ravel())[::-1]
