r"""Exact moments of the tangent kernel of random ReLU networks of finite width, without biases, at $C_w=2$."""

import math
from collections.abc import Sequence

from theodolite.core.checks import at_least, each_at_least, not_negative


def relu_ntk_mean(hidden_layers: int, mean_square: float) -> float:
    r"""$E\,\Theta(x,x)=2(L+1)\|x\|^2/n_0$ at any widths, for L hidden layers; ``mean_square`` is $\|x\|^2/n_0$.

    Each of the L + 1 matrices adds $2\|x\|^2/n_0$, the last one too. NTK parametrization (rates $C_w/$fan-in).
    Source: hanin2020.

    >>> relu_ntk_mean(1, 0.5)
    2.0
    """
    at_least(0, hidden_layers=hidden_layers)
    not_negative(mean_square=mean_square)
    return 2.0 * (hidden_layers + 1) * mean_square


def relu_ntk_second_moment(widths: Sequence[int]) -> float:
    r"""$E\,\Theta(x,x)^2/(E\,\Theta(x,x))^2$ for hidden layers of these widths, exactly.

    $\Theta=\sum_lK_l$ over the L + 1 matrices; $E K_lK_{l'}$ factors into norms in front of both, behind both, and the
    Frobenius norm of the product of matrices between them, whose fourth moment follows a linear recursion in
    $p=E(\mathrm{tr}B)^2$, $q=E\,\mathrm{tr}B^2$. Source: hanin2020 (up to constants).

    >>> relu_ntk_second_moment([8])
    1.375
    """
    each_at_least(1, widths=widths)
    L = len(widths)
    spread = [1 + 5 / n for n in widths]
    total = (L + 1) * math.prod(spread)
    for first in range(1, L + 1):  # the matrix in front; between it and the later one lie layers first .. last
        p, q = widths[first - 1] * (widths[first - 1] + 1) / 4, widths[first - 1] / 2
        for last in range(first, L + 1):
            n = widths[last - 1]
            if last > first:
                s = 2 / widths[last - 2]
                p, q = s * s * (n * (n + 1) * p + 4 * n * q) / 4, s * s * (2 * n * p + n * (n + 3) * q) / 4
            between = p / (n / 2) ** 2
            total += 2 * math.prod(spread[: first - 1]) * math.prod(spread[last:]) * between
    return total / (L + 1) ** 2


def relu_ntk_cosine(cosine: float, *, hidden_layers: int) -> float:
    r"""$\Theta(x,x')/(2\|x\|\|x'\|/n_0)$ of infinitely wide networks, for inputs at this cosine.

    With $\kappa_0(\rho)=1-\arccos\rho/\pi$ and $\kappa_1(\rho)=(\sqrt{1-\rho^2}+\rho(\pi-\arccos\rho))/\pi$:
    $T\leftarrow\kappa_1(\rho)+T\kappa_0(\rho)$, $\rho\leftarrow\kappa_1(\rho)$, from $T=\rho$. Source: cho2009; jacot2018.

    >>> round(relu_ntk_cosine(0.0, hidden_layers=1), 6)
    0.31831
    >>> relu_ntk_cosine(1.0, hidden_layers=3)
    4.0
    """
    at_least(0, hidden_layers=hidden_layers)
    rho = total = cosine
    for _ in range(hidden_layers):
        angle = math.acos(max(-1.0, min(1.0, rho)))
        forward = (math.sin(angle) + rho * (math.pi - angle)) / math.pi
        total = forward + total * (1 - angle / math.pi)
        rho = forward
    return total


def independent_gates_cosine(cosine: float, *, hidden_layers: int) -> float:
    r"""The same if gates of two inputs were independent of the weights: $(L+1)\rho_0\prod_l2P_l$. It is false.

    $P_l=\frac12-\arccos\rho_l/2\pi$ is the chance that a unit is on for both. Kept to be refuted.

    >>> independent_gates_cosine(0.0, hidden_layers=2)
    0.0
    """
    at_least(0, hidden_layers=hidden_layers)
    rho, both = cosine, 1.0
    for _ in range(hidden_layers):
        angle = math.acos(max(-1.0, min(1.0, rho)))
        both *= 1 - angle / math.pi
        rho = (math.sin(angle) + rho * (math.pi - angle)) / math.pi
    return (hidden_layers + 1) * cosine * both


def one_hidden_layer_spread(negative_slope: float) -> float:
    r"""$n\,\mathrm{Var}\,\Theta/(E\,\Theta)^2$ of one hidden layer of n (leaky) ReLU units: 3 for ReLU, 1 for linear.

    Both matrices add a mean over units, of $h^2$ and of $a^2\dot\sigma^2$, of relative variance $c/n$ each with
    $c=6\frac{1+a^4}{(1+a^2)^2}-1$, and relative covariance $c'/n$, $c'=2\frac{1+a^4}{(1+a^2)^2}-1$.

    >>> one_hidden_layer_spread(0.0), one_hidden_layer_spread(1.0)
    (3.0, 1.0)
    """
    share = (1 + negative_slope**4) / (1 + negative_slope**2) ** 2
    return 0.5 * ((6 * share - 1) + (2 * share - 1))
