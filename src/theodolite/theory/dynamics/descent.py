r"""Gradient descent on quadratic models, with noise, and just beyond: where it is stable, how fast, what remains."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from theodolite.core.checks import InputError, at_least, finite, not_negative, positive


def step_size_edge(lr: float, momentum: float = 0.0) -> float:
    r"""The curvature $(2+2\beta)/\eta$ at which steps of size $\eta$ with heavy-ball momentum $\beta$ stop being stable.

    Along an eigenvector of curvature $\lambda$ the step is $x_{t+1}=(1+\beta-\eta\lambda)x_t-\beta x_{t-1}$, whose roots leave
    the unit circle at -1 when $\eta\lambda=2+2\beta$. Given a curvature in place of the step, it is the largest stable step:
    for $\frac{1}{2m}\sum(z-y)^2$ the curvature is $\lambda_{\max}(\Theta)/m$ of the tangent kernel.
    Source: cohen2021; polyak1964.

    >>> step_size_edge(0.1), step_size_edge(0.1, momentum=0.5)
    (20.0, 30.0)
    """
    if not lr > 0 or not 0 <= momentum < 1:
        raise InputError(f"expected a positive step and a momentum in [0, 1), got {lr} and {momentum}")
    return (2 + 2 * momentum) / lr


def quadratic_rate(smallest: float, largest: float, *, lr: float) -> float:
    r"""The factor $\rho=\max(|1-\eta\lambda_{\min}|,|1-\eta\lambda_{\max}|)$ a step by which the error shrinks in the long run.

    Below 1 exactly for $0<\eta<2/\lambda_{\max}$. Source: nesterov2004, section 2.1.

    >>> quadratic_rate(0.5, 2.0, lr=0.8)
    0.6000000000000001
    """
    positive(smallest=smallest)
    finite(largest=largest)
    not_negative(lr=lr)
    return max(abs(1 - lr * smallest), abs(1 - lr * largest))


def noise_floor(curvature: float, *, lr: float, noise_variance: float) -> float:
    r"""The stationary variance $\eta\sigma^2/\lambda(2-\eta\lambda)$ along a direction, for noise of variance $\sigma^2$.

    Infinite where the step is not stable.

    >>> noise_floor(2.0, lr=0.5, noise_variance=1.0)
    0.25
    """
    not_negative(lr=lr, noise_variance=noise_variance)
    finite(curvature=curvature)
    if not 0 < lr * curvature < 2:
        return math.inf
    return lr * noise_variance / (curvature * (2 - lr * curvature))


def mean_square_path(
    lrs: Iterable[float], *, curvature: float, noise_variance: float, mean_square: float
) -> list[float]:
    r"""$E\theta_t^2$ under $\theta'=\theta-\eta_t(\lambda\theta+\xi_t)$: $v'=(1-\eta_t\lambda)^2v+\eta_t^2\sigma^2$.

    From ``mean_square`` on, which comes first. It tends to 0 when $\eta_t\to0$ and $\sum\eta_t=\infty$. Source: robbins1951.

    >>> mean_square_path([1.0, 0.5], curvature=1.0, noise_variance=1.0, mean_square=4.0)
    [4.0, 1.0, 0.5]
    """
    not_negative(noise_variance=noise_variance, mean_square=mean_square)
    path = [mean_square]
    for lr in lrs:
        path.append((1 - lr * curvature) ** 2 * path[-1] + lr**2 * noise_variance)
    return path


@dataclass(frozen=True)
class Catapult:
    """Output f and curvature of the two-layer linear model on one datum, step by step."""

    outputs: tuple[float, ...]
    curvatures: tuple[float, ...]


def catapult_path(output: float, curvature: float, *, lr: float, width: int, steps: int) -> Catapult:
    r"""$f=u\cdot v/\sqrt n$, $L=f^2/2$: $f'=(1-\eta\lambda+\eta^2f^2/n)f$, $\lambda'=\lambda+\frac{\eta f^2}{n}(\eta\lambda-4)$.

    $\lambda=(|u|^2+|v|^2)/n$ is the curvature (tangent kernel). The recursion is exact at every width; it converges for
    $\eta\lambda_0<4$ and diverges above. Stops early where the output overflows. Source: lewkowycz2020.

    >>> catapult_path(1.0, 1.0, lr=1.0, width=4, steps=1).outputs
    (1.0, 0.25)
    """
    not_negative(lr=lr)
    at_least(1, width=width)
    at_least(0, steps=steps)
    f, lam = [output], [curvature]
    for _ in range(steps):
        square = f[-1] ** 2 / width
        following = (1 - lr * lam[-1] + lr**2 * square) * f[-1]
        lam.append(lam[-1] + lr * square * (lr * lam[-1] - 4))
        f.append(following)
        if not abs(following) < 1e100:
            break
    return Catapult(tuple(f), tuple(lam))


CATAPULT_LIMIT = 4.0
r"""$\eta\lambda_0$ beyond which the two-layer linear model on one datum diverges."""


def decaying_steps(lr: float, exponent: float, *, steps: int) -> Sequence[float]:
    r"""$\eta_t=\eta_1t^{-p}$ for t = 1, 2, ...

    >>> decaying_steps(0.5, 1.0, steps=2)
    [0.5, 0.25]
    """
    not_negative(lr=lr)
    at_least(0, steps=steps)
    return [lr * t**-exponent for t in range(1, steps + 1)]
