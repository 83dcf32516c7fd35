r"""A diagonal network moves as $\beta=2\alpha^2\theta_0^2\sinh(-4X^\top\int r)$, one number for each sample deciding all."""

import numpy as np
from scipy.integrate import solve_ivp

from theodolite.construct.dynamics import diagonal_slope, interpolation
from theodolite.core.law import Law
from theodolite.measure.experiments import flowed
from theodolite.theory.bias import sinh_solution


def predict(alpha: float, time: float, factor: float = 1.0) -> float:
    """By the integrated residuals alone, as many numbers as samples: $\\dot R=X\\beta(R)-y$, by another integrator."""
    x, y, shape = interpolation(0)

    def residual(_: float, seen: np.ndarray) -> np.ndarray:
        return np.asarray(x @ (factor * sinh_solution(x.T @ seen, scale=alpha, initial_shape=shape)) - y)

    found = solve_ivp(residual, (0.0, time), np.zeros(len(y)), method="DOP853", rtol=1e-12, atol=1e-13)
    seen = found.y[:, -1]
    return float(np.cos(np.arange(10)) @ (factor * sinh_solution(x.T @ seen, scale=alpha, initial_shape=shape)))


def measure(alpha: float, time: float, *, tilt: float = 1.0, steps: int = 0) -> float:
    """By the flow of all parameters; ``tilt`` starts one half larger, ``steps`` descends in place of flowing."""
    x, y, shape = interpolation(0)
    start, slope = alpha * np.concatenate([shape, tilt * shape]), diagonal_slope(x, y)
    if steps:
        end = start
        for _ in range(steps):
            end = end - time / steps * slope(end)
    else:
        end = flowed(slope, start, time=time)
    plus, minus = np.split(end, 2)
    return float(np.cos(np.arange(10)) @ (plus**2 - minus**2))


law = Law(
    claim="Gradient flow on a network of two diagonal layers conserves the product of its halves, so that its weights are a "
    "hyperbolic sine of the residuals it has seen.",
    formula=r"\theta_+\theta_-=\alpha^2\theta_0^2,\qquad\beta(t)=2\alpha^2\theta_0^2\sinh\Big(-4X^\top\!\int_0^tr\Big)",
    assumes={"both halves start alike": {"tilt": 1.0 + 2.6e-08}, "gradient flow": {"steps": 10}},
    source="woodworth2020, section 4",
    predict=predict,
    measure=measure,
    cases=({"alpha": 0.1, "time": 1.0}, {"alpha": 1.0, "time": 0.3}, {"alpha": 0.01, "time": 3.0}),
    tolerance=1e-7,  # both integrators keep 1e-11 a step
    quantity="a component of the weights at a time",
    erratum="The solution is found without the factor 2 before alpha^2.",
    refuted=lambda alpha, time: predict(alpha, time, factor=0.5),
)
