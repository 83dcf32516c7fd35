r"""Weakly penalized by its potential, least squares ends where the diagonal network does, with an error of order $\lambda$."""

import numpy as np

from theodolite.construct.dynamics import diagonal_slope, interpolation
from theodolite.core.law import Law
from theodolite.measure.experiments import flow_limit

SCALE = 0.3


def measure(instance: int, ridge: float, *, penalty: str = "the potential") -> float:
    """The distance from the trained diagonal network of the least penalized square error, by Newton's method."""
    x, y, shape = interpolation(instance)
    w = (SCALE * shape) ** 2
    plus, minus = np.split(flow_limit(diagonal_slope(x, y), SCALE * np.concatenate([shape, shape])), 2)
    beta = goal = plus**2 - minus**2
    for _ in range(60):
        if penalty == "the potential":
            slope, curve = np.arcsinh(beta / (2 * w)), 1 / np.sqrt(4 * w**2 + beta**2)
        else:
            slope, curve = beta, np.ones_like(beta)
        gradient = 2 * x.T @ (x @ beta - y) + ridge * slope
        step = np.linalg.solve(2 * x.T @ x + ridge * np.diag(curve), gradient)
        beta = beta - step
        if np.abs(step).max() < 1e-13:
            break
    return float(np.linalg.norm(beta - goal))


law = Law(
    claim="The interpolant that gradient flow finds is the end of a path of penalized solutions, as the least norm is the end of "
    "ridge regression's.",
    formula=r"\arg\min|X\beta-y|^2+\lambda Q(\beta)=\arg\min_{X\beta=y}Q+O(\lambda)",
    assumes={"the penalty is the potential": {"penalty": "l2"}},
    source="woodworth2020",
    predict=lambda **case: 1.0,
    measure=measure,
    cases=tuple({"instance": 1, "ridge": r} for r in (1e-3, 3e-4, 1e-4, 3e-5)),
    full=({"instance": 1, "ridge": 1e-5},),
    tolerance=0.02,  # the next order is lambda^2
    quantity="distance to the trained diagonal network",
    exponent="ridge",
)
