"""Entropy numbers of sets that are known exactly, dimensions that keep distances, and what counting allows."""

import math
from collections.abc import Sequence

from theodolite.core.checks import InputError, at_least, positive


def lipschitz_entropy_number(bits: int) -> float:
    r"""$\epsilon_n=\frac1{n+1}$ for functions on [0, 1] with f(0) = 0 and slopes at most 1, in the sup norm.

    Source: kolmogorov1959. Without f(0) = 0 the set is not compact and has no entropy numbers.

    >>> lipschitz_entropy_number(3)
    0.25
    """
    at_least(0, bits=bits)
    return 1 / (bits + 1)


def cube_entropy_number(dimension: int, bits: int) -> float:
    r"""$\epsilon_n=2^{-(k+1)}$ for $[0,1]^d$ in the sup norm at $n=dk$ bits: the cube cut in half k times along each axis.

    >>> cube_entropy_number(2, 4)
    0.125
    """
    at_least(1, dimension=dimension)
    if bits % dimension:
        raise InputError(
            f"expected a multiple of {dimension} bits, got {bits}; between them the cube is not cut evenly"
        )
    return math.exp2(-(bits // dimension + 1))


def ellipsoid_stable_width(axes: Sequence[float], *, dimension: int) -> float:
    r"""$\delta_n=a_{n+1}$ of an ellipsoid of half ``axes`` $a_1\ge a_2\ge\dots$ through n = ``dimension`` numbers, 0 beyond.

    Source: cohen2022.

    >>> ellipsoid_stable_width((0.5, 2.0, 1.0), dimension=1)
    1.0
    """
    if dimension < 0 or not axes or min(axes) < 0:
        raise InputError(
            f"expected half axes of at least 0 and a number of dimensions, got {tuple(axes)} and {dimension}"
        )
    return float(sorted((*axes, 0.0), reverse=True)[min(dimension, len(axes))])


def separated_points_bounds(dimension: int, radius: float) -> tuple[float, float]:
    r"""A ball of ``radius`` R holds at least $R^d$ and at most $(1+2R)^d$ points one apart (as many as fit): by volume.

    The upper end is what limits every stable code of d numbers from below (Carl's inequality). Source: carl1981.

    >>> separated_points_bounds(2, 4.0)
    (16.0, 81.0)
    """
    at_least(0, dimension=dimension)
    positive(radius=radius)
    return radius**dimension, (1 + 2 * radius) ** dimension


def embedding_dimension(count: int, *, distortion: float = 2.0) -> int:
    r"""$m\ge4\ln k/(\frac{\delta^2}2-\frac{\delta^3}3)$: into so many dimensions k points go with this distortion, linearly.

    $(1+\delta)/(1-\delta)$ is the squared distortion. Source: dasgupta2003.

    >>> embedding_dimension(2**10)  # 26 dimensions a bit
    257
    """
    at_least(2, count=count)
    if not distortion > 1:
        raise InputError(f"expected a distortion above 1, got {distortion}; pass 2.0, say")
    square = distortion**2
    delta = (square - 1) / (square + 1)
    return math.ceil(4 * math.log(count) / (delta**2 / 2 - delta**3 / 3))


def contraction_bound(count: int, dimension: int) -> float:
    r"""$\sqrt{m/(k-1)}$: every linear map of norm 1 into m dimensions shrinks some two corners of a simplex of k to this or less.

    The mean squared ratio over pairs is $\mathrm{tr}(A^\top A)/(k-1)\le m/(k-1)$ on the simplex's own space.

    >>> round(contraction_bound(2048, 352), 3)
    0.415
    """
    at_least(2, count=count)  # one corner has no distance to shrink
    at_least(0, dimension=dimension)
    return min(1.0, math.sqrt(dimension / (count - 1)))
