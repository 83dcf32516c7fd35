r"""Gradient flow as it is run: integrated to its end, in time or in its logarithm, and chains that noise keeps going."""

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from theodolite.core.checks import InputError, at_least, finite, finite_values, not_negative, real_values, within

Array = np.ndarray[Any, np.dtype[np.float64]]
_Slope = Callable[[Array], Array]
"""The gradient at a point, (d,) to (d,)."""

PRECISION = {"rtol": 1e-11, "atol": 1e-13}


def flowed(slope: _Slope, start: Array, *, time: float, precision: float = 1.0, method: str = "LSODA") -> Array:
    r"""Where $\dot\theta=-\nabla L$ is at a time.

    ``precision`` multiplies the tolerances (1e-11 relative, 1e-13 absolute a step); ``method`` is one of scipy's.

    >>> bool(abs(flowed(lambda x: x, np.ones(1), time=1.0) - np.exp(-1)) < 1e-9)
    True
    """
    within(0, math.inf, time=time)
    not_negative(precision=precision)
    real_values(start=start)
    from scipy.integrate import solve_ivp

    tolerances = {key: value * precision for key, value in PRECISION.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the integrator warns of is raised below
        path = solve_ivp(
            lambda _, x: -slope(x), (0.0, time), np.asarray(start, dtype=float), method=method, **tolerances
        )
    if not path.success or not np.isfinite(path.y[:, -1]).all():
        raise InputError(
            f"expected a flow that stays finite, got: {path.message}; it diverges or its gradient is not a number"
        )
    return np.asarray(path.y[:, -1])


def flow_limit(slope: _Slope, start: Array, *, time: float = 10.0, still: float = 1e-12, doublings: int = 24) -> Array:
    r"""Where $\dot\theta=-\nabla L$ comes to rest: over times that double until the gradient is below ``still``.

    Or below so much of the gradient at the start, if that is above 1: rounding leaves as much.

    >>> flow_limit(lambda x: np.array([2 * x[0] - 1, 0.0]), np.zeros(2)).round(9).tolist()
    [0.5, 0.0]
    """
    within(0, math.inf, time=time)
    real_values(start=start)
    point = np.asarray(start, dtype=float)
    still = still * max(1.0, float(np.abs(slope(point)).max()))
    for k in range(doublings):
        point = flowed(slope, point, time=time * 2**k)
        if float(np.abs(slope(point)).max()) < still:
            return point
    raise InputError(
        f"expected a flow that comes to rest, got a gradient of {np.abs(slope(point)).max():.2g} after {doublings} doublings"
    )


Tail = Literal["exponential", "logistic"] | float


def separating_flow(
    signed_x: Array,
    *,
    log_time: float,
    loss_tail: Tail = "exponential",
    start: Array | None = None,
    first_log_time: float = 0.0,
) -> Array:
    r"""w at $\ln t$ = ``log_time`` under gradient flow on $\sum\ell(z_i\cdot w)$, integrated in $s=\ln t$, to $t=e^{300}$.

    $dw/ds=\sum z_ie^s(-\ell'(z_i\cdot w))$ with $-\ell'=e^{-u}$, $1/(1+e^u)$, or for a number p the power tail
    $(1+\max(u,0))^{-p-1}$. It starts at $\ln t$ = ``first_log_time``.

    >>> w = separating_flow(np.array([[1.0]]), log_time=50.0)  # w' = exp(-w): w = log(t) from w = 0 at t = 1
    >>> round(float(w[0]), 6)
    50.0
    """
    real_values(signed_x=signed_x)
    finite(log_time=log_time, first_log_time=first_log_time)
    finite_values(signed_x=signed_x, start=start)
    from scipy.integrate import solve_ivp

    z = np.asarray(signed_x, dtype=float)
    w0 = np.zeros(z.shape[1]) if start is None else np.asarray(start, dtype=float)

    def push(s: float, w: Array) -> Array:
        u = z @ w
        if loss_tail == "exponential":
            pull = np.exp(np.minimum(s - u, 600.0))
        elif loss_tail == "logistic":
            pull = np.exp(s - np.logaddexp(0.0, u))
        else:
            pull = np.exp(s - (float(loss_tail) + 1) * np.log1p(np.maximum(u, 0.0)))
        return np.asarray(pull @ z)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the integrator warns of is raised below
        path = solve_ivp(push, (first_log_time, log_time), w0, method="LSODA", rtol=1e-10, atol=1e-12)
    if not path.success or not np.isfinite(path.y[:, -1]).all():
        raise InputError(f"expected a flow that stays finite, got: {path.message}; look for NaN in the samples")
    return np.asarray(path.y[:, -1])


def log_loss_times_time(signed_x: Array, weight: Array, *, log_time: float, loss_tail: Tail = "exponential") -> float:
    r"""$t\,L(w)$ at a time that need not be a number of double precision: $\sum e^{s-z_i\cdot w}$."""
    real_values(signed_x=signed_x)
    u = np.asarray(signed_x, dtype=float) @ weight
    if loss_tail == "logistic":
        # log(1 + e^-u) is e^-u there
        log_loss = np.where(u > 30.0, -u, np.log(np.logaddexp(0.0, -np.minimum(u, 30.0))))
        return float(np.exp(log_time + log_loss).sum())
    return float(np.exp(log_time - u).sum())


def enumerated_batches(samples: int, batch_size: int, sampler: str) -> tuple[Array, Array]:
    r"""Every batch a sampler can draw, as weights of the samples (batches, samples) that sum the gradient, and its probability.

    >>> weights, chances = enumerated_batches(3, 2, "without replacement")
    >>> weights.tolist(), chances.round(3).tolist()
    ([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]], [0.333, 0.333, 0.333])
    """
    at_least(1, samples=samples, batch_size=batch_size)
    if sampler == "independent":
        drawn = np.array(list(itertools.product((0.0, 1.0), repeat=samples)))
        p, sizes = batch_size / samples, drawn.sum(1)
        return drawn / batch_size, p**sizes * (1 - p) ** (samples - sizes)
    if sampler == "without replacement":
        chosen = list(itertools.combinations(range(samples), batch_size))
    elif sampler == "with replacement":
        chosen = list(itertools.product(range(samples), repeat=batch_size))
    else:
        raise InputError(f"expected a sampler independent, without or with replacement, got {sampler!r}")
    weights = np.zeros((len(chosen), samples))
    for row, members in enumerate(chosen):
        np.add.at(weights[row], list(members), 1 / batch_size)
    return weights, np.full(len(chosen), 1 / len(chosen))


def stationary_vector(transition: Array) -> Array:
    r"""The law that a chain keeps: $pT=p$, rows of T summing to 1.

    >>> stationary_vector(np.array([[0.5, 0.5], [1.0, 0.0]])).round(6)
    array([0.666667, 0.333333])
    """
    n = len(transition)
    system = np.vstack([transition.T - np.eye(n), np.ones(n)])
    return np.asarray(np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0])
