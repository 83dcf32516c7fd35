r"""Gradient flow on a linear model ends at $\theta_0-\Phi K^{-1}(\Phi^\top\theta_0-Y)$."""

import numpy as np

from theodolite.construct.dynamics import quadratic_problem, quadratic_slope
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import flow_limit
from theodolite.theory.dynamics import quadratic_models as quadratic


def predict(instance: int, samples: int) -> Band:
    problem, start = quadratic_problem(instance, parameter_count=7, samples=samples)
    end = quadratic.linear_flow_limit(problem.features, problem.targets, start)
    return Band.around(float(_probe() @ end), abs=1e-8)  # the integrator keeps 1e-11 a step


def measure(instance: int, samples: int, *, epsilon: float = 0.0, overshoot: float = 0.0) -> float:
    """A component of the end; ``overshoot`` starts that far outside the span of the data."""
    problem, start = quadratic_problem(instance, parameter_count=7, samples=samples)
    outside = np.eye(7) - problem.features @ np.linalg.pinv(problem.features)
    start = start + overshoot * outside @ _probe()
    return float(_probe() @ flow_limit(quadratic_slope(problem, epsilon), start))


def _probe() -> np.ndarray:
    return np.asarray(np.cos(np.arange(7.0)))


law = Law(
    claim="Gradient flow on least squares with more parameters than data ends at the interpolant nearest to where it started; "
    "what lies outside the span of the data never moves.",
    formula=r"\theta^F=\theta_0-\Phi K^{-1}(\Phi^\top\theta_0-Y),\qquad\Phi\Phi^\top\theta^F=\Phi Y",
    assumes={"a model linear in its parameters": {"epsilon": 3.2e-09}, "the stated start": {"overshoot": 1.2e-08}},
    source="soudry2018, section 1",
    predict=predict,
    measure=measure,
    cases=({"instance": 0, "samples": 3}, {"instance": 1, "samples": 5}, {"instance": 2, "samples": 6}),
    quantity="a component of the end",
)
