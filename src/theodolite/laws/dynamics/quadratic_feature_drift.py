r"""Features of a slightly quadratic model move towards the solution, by $\epsilon F(x)(I-e^{-\gamma tA})(\theta^*-\theta_0)$."""

import numpy as np

from theodolite.construct.dynamics import quadratic_problem, quadratic_slope
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import flowed
from theodolite.theory.dynamics import feature_drift

EPSILON = 1e-4


def predict(instance: int, time: float, sign: float = 1.0) -> Band:
    problem, start = quadratic_problem(instance, parameter_count=7, samples=3)
    drift = sign * feature_drift(problem.second_derivatives[0], problem, start=start, time=time)
    # extrapolated from two values of epsilon: order epsilon^2 times some hundreds
    return Band.around(float(drift[0]), abs=1e-4 * float(np.linalg.norm(drift)))


def measure(instance: int, time: float, *, epsilon: float = EPSILON, steps: int = 0) -> float:
    """The first feature's change over epsilon; with ``steps`` by so many steps of descent in place of the flow."""
    problem, start = quadratic_problem(instance, parameter_count=7, samples=3)
    found = []
    for e in (epsilon, epsilon / 2):
        slope, end = quadratic_slope(problem, e), start
        if steps:
            for _ in range(steps):
                end = end - time / steps * slope(end)
        else:
            end = flowed(slope, start, time=time)
        found.append(float(problem.second_derivatives[0][0] @ (end - start)))  # features are Phi + epsilon F theta
    return 2 * found[1] - found[0]


law = Law(
    claim="While the linear part is being fitted the features move along the path of the parameters, towards the solution and "
    "not away from it.",
    formula=r"\Phi^E(x;\theta_t)-\Phi^E(x;\theta_0)=\epsilon F(x)(I-e^{-\gamma t\Phi\Phi^\top})(\theta^*-\theta_0)+O(\epsilon^2)",
    assumes={"a small quadratic term": {"epsilon": 0.012}, "gradient flow": {"steps": 1}},
    source="roberts2022, section 11.4",
    predict=predict,
    measure=measure,
    cases=({"instance": 0, "time": 0.3}, {"instance": 1, "time": 0.3}, {"instance": 0, "time": 30.0}),
    full=({"instance": 2, "time": 1.0},),
    quantity="drift of a feature over epsilon",
    erratum="The formula is found with theta_0 - theta^*, which has the opposite sign.",
    refuted=lambda instance, time: predict(instance, time, sign=-1.0),
)
