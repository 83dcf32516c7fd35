r"""On separable data time times loss tends to $|\hat w|^2$, one over the squared margin."""

import numpy as np

from theodolite.construct.dynamics import separable
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import log_loss_times_time, separating_flow
from theodolite.measure.experiments.flows import Tail
from theodolite.theory.bias import widest_margin


def predict(instance: int, log_time: float, tail: str) -> Band:
    margin = widest_margin(separable(instance))
    # an error of 1e-10 in w of some hundreds is 1e-7 of the exponential; earlier the other samples still count
    return Band.around(1 / margin.margin**2, rel=1e-5 if log_time >= 200 else 1e-3)


def measure(instance: int, log_time: float, tail: Tail, *, exponent: float = 0.0, weight: float = 1.0) -> float:
    """t L(t); with ``exponent`` along the flow of a power tail, with ``weight`` the nearest sample is so much nearer."""
    rows = separable(instance)
    w = separating_flow(rows, log_time=log_time, loss_tail=exponent or tail)
    if weight != 1.0:
        nearest = int((rows @ w).argmin())
        rows = np.where(np.arange(len(rows))[:, None] == nearest, weight, 1.0) * rows
        w = separating_flow(rows, log_time=log_time, loss_tail=exponent or tail)
    return min(log_loss_times_time(rows, w, log_time=log_time, loss_tail=tail), 1e300)


law = Law(
    claim="The loss of gradient flow on separable classes falls as one over time, with a constant that is one over the squared "
    "margin: the sharpest test of the theorem, for exponential and logistic losses alike.",
    formula=r"t\,L(w(t))\to|\hat w|^2=1/\gamma^2",
    assumes={"an exponential tail": {"exponent": 1.0}, "the stated samples": {"weight": 0.99998}},
    source="soudry2018",
    predict=predict,
    measure=measure,
    cases=(
        {"instance": 2, "log_time": 60.0, "tail": "logistic"},
        {"instance": 2, "log_time": 220.0, "tail": "exponential"},
        {"instance": 4, "log_time": 220.0, "tail": "exponential"},
    ),
    full=({"instance": 2, "log_time": 300.0, "tail": "exponential"},),
    quantity="time times loss",
)
