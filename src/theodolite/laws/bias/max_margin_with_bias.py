r"""With a trained bias gradient flow finds the least $|w|^2+b^2$, not the support vector machine."""

import numpy as np

from theodolite.core.law import Law
from theodolite.measure.experiments import separating_flow
from theodolite.theory.bias import widest_margin


def predict(above: float, below: float, bias: str = "homogeneous") -> float:
    found = widest_margin(np.array([[above], [below]]), np.array([1, -1]), intercept=bias)
    return -found.bias / float(found.weight[0])


def measure(above: float, below: float, *, speed: float = 1.0) -> float:
    """The boundary that the flow's direction of growth between log t = 100 and 200 draws; the bias learns so much faster."""
    rows = np.array([[above, speed**0.5], [-below, -(speed**0.5)]])
    grown = separating_flow(rows, log_time=200.0) - separating_flow(rows, log_time=100.0)
    return float(-(speed**0.5) * grown[1] / grown[0])


law = Law(
    claim="Trained together, weights and bias find the widest margin of the samples with a coordinate 1 added; the boundary "
    "half-way between the classes, which the support vector machine draws, is another.",
    formula=r"(w,b)\propto\arg\min|w|^2+b^2\ \text{s.t.}\ y_i(w\cdot x_i+b)\geq1",
    assumes={"weights and bias learn at the same rate": {"speed": 1.0 + 3.3e-06}},
    source="soudry2018",
    predict=predict,
    measure=measure,
    cases=({"above": 3.0, "below": -10.0}, {"above": 5.0, "below": 1.0}, {"above": 2.0, "below": -1.0}),
    tolerance=1e-6,  # the integrator keeps 1e-10 of some hundreds, over a growth of a hundred
    quantity="boundary",
    erratum="It is often said that logistic regression with a bias tends to the support vector machine.",
    refuted=lambda above, below: predict(above, below, bias="free"),
)
