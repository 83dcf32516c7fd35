r"""A loss with a power tail turns gradient flow to the least $\sum(x_i\cdot d)^{-p}$, not to the widest margin."""

import numpy as np

from theodolite.construct.dynamics import separable
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import separating_flow
from theodolite.measure.experiments.flows import Tail
from theodolite.theory.bias import margins


def predict(instance: int, exponent: float) -> Band:
    return Band.around(float(margins.power_tail_direction(separable(instance), exponent=exponent)[0]), abs=1e-5)


def widest(instance: int, exponent: float) -> Band:
    best = margins.widest_margin(separable(instance)).weight
    return Band.around(float(best[0] / np.linalg.norm(best)), abs=1e-5)


def measure(instance: int, exponent: float, *, tail: Tail | None = None) -> float:
    """The first component of the direction at log t = 80, where |w| is t^(1/(p + 2)): what is left is one over that."""
    w = separating_flow(separable(instance), log_time=80.0, loss_tail=tail or exponent)
    return float(w[0] / np.linalg.norm(w))


law = Law(
    claim="Losses that fall as a power keep every sample in play: the direction balances all margins, and becomes the widest "
    "margin only as the power grows.",
    formula=r"\frac{w(t)}{|w(t)|}\to\arg\min_{|d|=1}\sum_i(y_ix_i\cdot d)^{-p}",
    assumes={"a power tail": {"tail": "exponential"}},
    source="ji2020",
    predict=predict,
    measure=measure,
    cases=({"instance": 2, "exponent": 1.0}, {"instance": 2, "exponent": 3.0}, {"instance": 4, "exponent": 2.0}),
    full=({"instance": 9, "exponent": 1.5},),
    quantity="first component of the direction",
    erratum="That any falling loss finds the widest margin is true of exponential tails alone.",
    refuted=widest,
)
