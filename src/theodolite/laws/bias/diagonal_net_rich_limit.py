r"""From a small start a diagonal network ends near the interpolant of least $\ell_1$ norm, with an excess that falls slowly."""

import numpy as np

from theodolite.construct.dynamics import diagonal_slope, interpolation
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import flow_limit
from theodolite.theory.bias import least_l1_norm


def predict(instance: int, alpha: float) -> Band:
    x, y, _ = interpolation(instance)
    least = float(np.abs(least_l1_norm(x, y)).sum())
    return Band(least * (1 - 1e-6), 1.1 * least)  # a logarithm of the start: within ten percent from 0.01 on


def measure(instance: int, alpha: float, *, larger: float = 1.0) -> float:
    x, y, _ = interpolation(instance)
    plus, minus = np.split(flow_limit(diagonal_slope(x, y), np.full(20, alpha * larger)), 2)
    return float(np.abs(plus**2 - minus**2).sum())


law = Law(
    claim="Small starts favor few large weights: the end approaches the least sum of absolute values, but only as the logarithm "
    "of the start.",
    formula=r"\alpha\to0:\;|\beta_\infty|_1\to\min_{X\beta=y}|\beta|_1",
    assumes={"a small start": {"larger": 50.0}},
    source="woodworth2020, Theorem 2",
    predict=predict,
    measure=measure,
    cases=({"instance": 1, "alpha": 0.01}, {"instance": 1, "alpha": 0.001}, {"instance": 3, "alpha": 0.01}),
    full=({"instance": 1, "alpha": 1e-4},),
    quantity="sum of absolute weights at the end",
)
