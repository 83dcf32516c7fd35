r"""From a large start a diagonal network ends at the least weighted $\ell_2$ norm, with an error of order $\alpha^{-4}$."""

import numpy as np

from theodolite.construct.dynamics import diagonal_slope, interpolation
from theodolite.core.law import Law
from theodolite.measure.experiments import flow_limit


def measure(instance: int, alpha: float, *, weighting: str = "of the start") -> float:
    """The distance of the flow's end from the weighted interpolant; or from the one that is not weighted."""
    x, y, shape = interpolation(instance)
    plus, minus = np.split(flow_limit(diagonal_slope(x, y), alpha * np.concatenate([shape, shape])), 2)
    size = np.abs(shape) if weighting == "of the start" else np.ones_like(shape)
    goal = size * np.linalg.lstsq(x * size, y, rcond=None)[0]  # the least norm in coordinates stretched by the start
    return float(np.linalg.norm(plus**2 - minus**2 - goal))


law = Law(
    claim="Large starts train as a linear model whose features are weighted by the start; what is left of the curvature falls as "
    "the fourth power of the scale.",
    formula=r"\alpha\to\infty:\;\beta_\infty=WX^\top(XWX^\top)^{-1}y+O(\alpha^{-4}),\quad W=\theta_0^2",
    assumes={"the norm is weighted by the start": {"weighting": "none"}},
    source="woodworth2020, Theorem 1",
    predict=lambda **case: -4.0,
    measure=measure,
    cases=tuple({"instance": 1, "alpha": a} for a in (3.0, 4.0, 5.5, 7.5, 10.0)),
    full=({"instance": 1, "alpha": 15.0},),
    tolerance=0.02,  # the next order is alpha^-8, a percent at the smallest scale
    quantity="distance to the weighted interpolant",
    exponent="alpha",
)
