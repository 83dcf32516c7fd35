r"""The direction of gradient flow on separable data nears the widest margin only as one over the logarithm of time."""

import numpy as np

from theodolite.construct.dynamics import separable
from theodolite.core.law import Law
from theodolite.measure.experiments import separating_flow
from theodolite.measure.experiments.flows import Tail


def measure(instance: int, log_time: float, *, tail: Tail = "exponential") -> float:
    rows = separable(instance)
    w, best = separating_flow(rows, log_time=log_time, loss_tail=tail), _widest(rows)
    return float(np.linalg.norm(w / np.linalg.norm(w) - best / np.linalg.norm(best)))


def _widest(rows: np.ndarray) -> np.ndarray:
    """The shortest w with rows w >= 1, by Lawson and Hanson's way from least squares with weights of one sign."""
    from scipy.optimize import nnls

    stacked = np.vstack([rows.T, np.ones(len(rows))])
    goal = np.zeros(len(stacked))
    goal[-1] = 1.0
    rest = goal - stacked @ nnls(stacked, goal)[0]
    return np.asarray(rest[:-1] / -rest[-1])


law = Law(
    claim="The way to the widest margin takes exponentially long: the angle falls as one over log t, long after every sample is "
    "on its side.",
    formula=r"\Big\|\frac{w(t)}{|w(t)|}-\frac{\hat w}{|\hat w|}\Big\|=\Theta\Big(\frac1{\ln t}\Big)",
    assumes={"an exponential tail": {"tail": 3.0}, "independent support vectors": None},
    source="soudry2018, Theorem 3",
    predict=lambda **case: -1.0,
    measure=measure,
    cases=tuple({"instance": 2, "log_time": s} for s in (100.0, 125.0, 160.0, 200.0, 250.0, 300.0)),
    full=({"instance": 2, "log_time": 400.0},),
    tolerance=0.05,  # the next order is one over log t, some hundredths of the slope
    quantity="distance of the direction",
    exponent="log_time",
)
