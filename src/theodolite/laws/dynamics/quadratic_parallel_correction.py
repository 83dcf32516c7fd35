r"""Within the span of the data a slightly quadratic model is a linear one on labels $Y-\frac\epsilon2\theta^{F\top}F\theta^F$."""

import numpy as np

from theodolite.construct.dynamics import quadratic_problem, quadratic_slope
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import flow_limit
from theodolite.theory.dynamics import label_deformation, linear_flow_limit, parallel_correction

EPSILON = 1e-4


def predict(instance: int) -> Band:
    problem, start = quadratic_problem(instance, parameter_count=7, samples=3)
    found = parallel_correction(problem, start)
    limit = linear_flow_limit(problem.features, problem.targets, start)
    deformed = problem.targets + EPSILON * label_deformation(problem, limit)
    by_labels = (linear_flow_limit(problem.features, deformed, start) - limit) / EPSILON
    assert np.allclose(found, by_labels, rtol=1e-9, atol=1e-10), "two forms of one statement"
    # what two values of epsilon leave is of order epsilon^2 times some hundreds; rounding leaves 1e-11 / epsilon
    return Band.around(float(np.linalg.norm(found)), rel=1e-4)


def measure(instance: int, *, epsilon: float = EPSILON) -> float:
    """The length of the end's change over epsilon within the span, extrapolated from epsilon and its half."""
    problem, start = quadratic_problem(instance, parameter_count=7, samples=3)
    inside = problem.features @ np.linalg.pinv(problem.features)
    linear = flow_limit(quadratic_slope(problem, 0.0), start)
    found = [(flow_limit(quadratic_slope(problem, e), start) - linear) / e for e in (epsilon, epsilon / 2)]
    return float(np.linalg.norm(inside @ (2 * found[1] - found[0])))


law = Law(
    claim="To first order the quadratic term acts on the part of the solution within the span of the data as a change of the "
    "labels would.",
    formula=r"\Pi_\parallel\theta^I=(\Phi\Phi^\top)^+\Phi Y^I,\qquad Y^I_\alpha=-\tfrac12\theta^{F\top}F_\alpha\theta^F",
    assumes={"a small quadratic term": {"epsilon": 0.0029}, "targets that the linear model fits": None},
    source="roberts2022, section 11.4",
    predict=predict,
    measure=measure,
    cases=({"instance": 0}, {"instance": 1}, {"instance": 2}),
    full=({"instance": 3},),
    quantity="first-order change within the span of the data",
)
