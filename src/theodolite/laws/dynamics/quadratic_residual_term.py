r"""Where residuals remain, a slightly quadratic model's minimum moves by a term that they weight, which interpolation hides."""

import numpy as np

from theodolite.construct.dynamics import quadratic_problem, quadratic_slope
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import flow_limit
from theodolite.theory.dynamics import label_deformation, linear_flow_limit, minimizer_correction

EPSILON = 1e-4


def predict(instance: int) -> Band:
    problem, _ = quadratic_problem(instance, parameter_count=3, samples=6)
    return _band(minimizer_correction(problem))


def without_residuals(instance: int) -> Band:
    problem, start = quadratic_problem(instance, parameter_count=3, samples=6)
    limit = linear_flow_limit(problem.features, problem.targets, start)
    return _band(np.linalg.pinv(problem.features.T) @ label_deformation(problem, limit))


def measure(instance: int, *, epsilon: float = EPSILON) -> float:
    problem, start = quadratic_problem(instance, parameter_count=3, samples=6)
    ends = {e: flow_limit(quadratic_slope(problem, e), start) for e in (0.0, epsilon / 2, epsilon)}
    quotients = [(ends[e] - ends[0.0]) / e for e in (epsilon, epsilon / 2)]
    return float((2 * quotients[1] - quotients[0]).sum())


def _band(correction: np.ndarray) -> Band:
    # extrapolated from two values of epsilon: order epsilon^2 times some hundreds
    return Band.around(float(correction.sum()), abs=1e-4 * float(np.linalg.norm(correction)))


law = Law(
    claim="Without interpolation the first-order change of the minimum has a second part, the residuals times the models' "
    "curvatures; it is of the same order as the first.",
    formula=r"\theta^I=-A^{-1}\sum_\alpha\big[F_\alpha\theta^F(\Phi_\alpha^\top\theta^F-y_\alpha)"
    r"+\tfrac12\Phi_\alpha\,\theta^{F\top}F_\alpha\theta^F\big]",
    assumes={"a small quadratic term": {"epsilon": 0.002}},
    source="roberts2022, section 11.4",
    predict=predict,
    measure=measure,
    cases=({"instance": 0}, {"instance": 1}, {"instance": 2}),
    quantity="first-order change of the minimum, summed over parameters",
    erratum="The term with the residuals is often dropped without saying that the linear model must interpolate; the error is "
    "then as large as the correction.",
    refuted=without_residuals,
)
