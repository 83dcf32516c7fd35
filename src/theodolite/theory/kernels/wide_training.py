r"""Why wide two-layer networks train: bounds on how far weights and kernel move, and the width that they ask for.

The network is $f(x)=n^{-1/2}\sum_ka_k\sigma(w_k\cdot x)$ with $|a_k|\leq1$ frozen, $|x|=1$, $|\sigma'|,|\sigma''|\leq1$, m
samples, loss $L=\frac{1}{2m}\sum(f-y)^2$, and $\lambda_0$ the smallest eigenvalue of the kernel of the layer that trains.
"""

import math

from theodolite.core.checks import at_least, not_negative, positive


def kernel_change_bound(movement: float, *, samples: int) -> float:
    r"""$\|K-K_0\|_{op}\leq2m\Delta$ when no $w_k$ has moved by more than $\Delta$. Source: du2019.

    >>> kernel_change_bound(0.5, samples=3)
    3.0
    """
    not_negative(movement=movement)
    at_least(1, samples=samples)
    return 2.0 * samples * movement


def weight_movement_bound(initial_loss: float, *, smallest: float, samples: int, width: int) -> float:
    r"""$|w_k(t)-w_k(0)|\leq2\sqrt2\,m\sqrt{L(0)}/(\lambda_0\sqrt n)$ while $K_t\succeq\lambda_0/2$. Source: du2019.

    >>> round(weight_movement_bound(2.0, smallest=1.0, samples=1, width=16), 12)
    1.0
    """
    not_negative(initial_loss=initial_loss)
    positive(smallest=smallest)
    at_least(1, samples=samples, width=width)
    return 2.0 * math.sqrt(2.0) * samples * math.sqrt(initial_loss) / (smallest * math.sqrt(width))


def certified_width(initial_loss: float, *, smallest: float, samples: int) -> float:
    r"""$n>128\,m^4L(0)/\lambda_0^4$ certifies convergence: weights move less than $\lambda_0/4m$, the kernel than $\lambda_0/2$.

    From `weight_movement_bound` below $\Delta=\lambda_0/(4m)$ and `kernel_change_bound` at $\Delta$. Source: du2019.
    Differs from the source: constants are those of this network.

    >>> certified_width(1.0, smallest=1.0, samples=1)
    128.0
    """
    not_negative(initial_loss=initial_loss)
    positive(smallest=smallest)
    at_least(1, samples=samples)
    return 128.0 * samples**4 * initial_loss / smallest**4


def decay_factor(lr: float, *, eigenvalue: float, steps: int) -> float:
    r"""$(1-\gamma\lambda)^{2t}$: the loss along one eigenvector of a fixed kernel after t steps of size $\gamma$.

    >>> decay_factor(0.5, eigenvalue=1.0, steps=1)
    0.25
    """
    not_negative(lr=lr)
    at_least(0, steps=steps)
    product = lr * eigenvalue
    if abs(product) < 0.5:  # 1 - 1e-12 has four digits of the 1e-12 only
        return math.exp(2 * steps * math.log1p(-product))
    return float((1.0 - product) ** (2 * steps))
