r"""On separable data gradient flow runs as $\hat w\ln t+\tilde w$, with $e^{-x_i\cdot\tilde w}=a_i$ on the support vectors."""

from theodolite.construct.dynamics import separable
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import separating_flow
from theodolite.measure.experiments.flows import Tail
from theodolite.theory.bias import residual_weight, widest_margin

INSTANCES = (2, 4)


def predict(instance: int, log_time: float) -> Band:
    rows = separable(instance)
    margin = widest_margin(rows)
    support = rows[list(margin.support)]
    # the integrator keeps 1e-10 of some hundreds; samples beyond the margin die out as t^(1 - their margin)
    return Band.around(float((support @ residual_weight(margin, rows)).sum()), abs=1e-5)


def measure(instance: int, log_time: float, *, tail: Tail = "exponential", sooner: float = 0.0) -> float:
    """The margins of the support vectors less log t, summed."""
    rows = separable(instance)
    w = separating_flow(rows, log_time=log_time - sooner, loss_tail=tail)
    # those of other samples grow with log t, by a tenth and more
    margins = rows @ separating_flow(rows, log_time=log_time)
    return float((rows[margins < log_time + 10] @ w - (log_time - sooner)).sum())


law = Law(
    claim="Gradient flow on separable classes with an exponential loss never stops: it goes out along the widest margin as log "
    "t, and what remains besides that is fixed by the multipliers.",
    formula=r"w(t)=\hat w\ln t+\rho(t),\qquad e^{-x_i\cdot\rho(\infty)}=a_i\;(i\in S)",
    assumes={
        "an exponential tail": {"tail": 3.0},
        "a long time": {"sooner": 94.0},
        "independent support vectors, all multipliers above 0": None,
    },
    source="soudry2018, Theorem 4",
    predict=predict,
    measure=measure,
    cases=(*({"instance": i, "log_time": 220.0} for i in INSTANCES), {"instance": 2, "log_time": 300.0}),
    quantity="margins of the support vectors less log t",
)
