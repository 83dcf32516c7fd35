r"""Gradient flow on a slightly quadratic model drifts out of the span of the data, by a closed form without the step size."""

import numpy as np

from theodolite.construct.dynamics import quadratic_problem, quadratic_slope
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import flow_limit
from theodolite.theory.dynamics import linear_flow_limit, perpendicular_correction

EPSILON = 1e-4


def predict(instance: int) -> Band:
    problem, start = quadratic_problem(instance, parameter_count=7, samples=3)
    return _band(perpendicular_correction(problem, start))


def path_from_zero(instance: int) -> Band:
    r"""With $(I-e^{-tA})(\theta_0-\theta^*)$ in place of $\theta_t$: as if $\theta_0=0$, sign changed."""
    problem, start = quadratic_problem(instance, parameter_count=7, samples=3)
    limit = linear_flow_limit(problem.features, problem.targets, start)
    times = np.linspace(0.0, 60.0, 6001)
    values, vectors = np.linalg.eigh(problem.features @ problem.features.T)
    moved = (-np.expm1(-np.outer(times, np.clip(values, 0, None))) * (vectors.T @ (start - limit))) @ vectors.T
    residuals = (start - moved) @ problem.features - problem.targets  # theta_t = theta_0 - moved
    rates = np.einsum("aij,tj,ta->ti", problem.second_derivatives, moved, residuals)
    integral = 0.01 * (rates[1:] + rates[:-1]).sum(0) / 2
    return _band(-(integral - problem.features @ (np.linalg.pinv(problem.features) @ integral)))


def measure(instance: int, *, epsilon: float = EPSILON, lr: float = 0.0) -> float:
    """The part of the change outside the span, over epsilon, summed; with ``lr`` by descent in place of the flow."""
    problem, start = quadratic_problem(instance, parameter_count=7, samples=3)
    outside = np.eye(7) - problem.features @ np.linalg.pinv(problem.features)
    found = []
    for e in (epsilon, epsilon / 2):
        slope, end = quadratic_slope(problem, e), start
        if lr:
            for _ in range(400):
                end = end - lr * slope(end)
        else:
            end = flow_limit(slope, start)
        found.append(float((outside @ (end - start)).sum()) / e)
    return 2 * found[1] - found[0]


def _band(correction: np.ndarray) -> Band:
    # extrapolated from two values of epsilon: order epsilon^2 times some hundreds
    return Band.around(float(correction.sum()), abs=1e-4 * float(np.linalg.norm(correction)))


law = Law(
    claim="To first order gradient flow gains a part outside the span of the data that depends on the whole path and so on the "
    "optimizer: descent with finite steps gains another.",
    formula=r"\theta^I_\perp(\infty)=-\Pi_\perp\sum_\alpha F_\alpha[\theta^*(K^{-1}r_0)_\alpha+\Phi K^{-1}Se_\alpha],"
    r"\quad KS+SK=r_0r_0^\top",
    assumes={"a small quadratic term": {"epsilon": 0.0032}, "gradient flow": {"lr": 0.005}},
    source="roberts2022, section 11.4",
    predict=predict,
    measure=measure,
    cases=({"instance": 0}, {"instance": 1}, {"instance": 2}),
    full=({"instance": 3},),
    quantity="first-order drift outside the span, summed over parameters",
    erratum="The rate of the drift is found with (I - exp(-tA))(theta_0 - theta^*) in place of theta_t, which is right, but for "
    "its sign, from theta_0 = 0 alone.",
    refuted=path_from_zero,
)
