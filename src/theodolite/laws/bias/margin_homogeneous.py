r"""A network of degree q in its weights learns as $tL\,(\ln\frac1L)^{2-2/q}\to1/(q^2\gamma^{2/q})$, $\gamma$ its margin."""

import math

import numpy as np
from numpy.typing import NDArray

from theodolite.core.law import Law

Array = NDArray[np.float64]
SAMPLES, INPUTS = 8, 4
FAR, STEP = 300.0, 0.06  # how far ln(1/L) goes, and by how much in a step


def measure(degree: int, instance: int, *, trained: str = "all", loss_tail: str = "exponential") -> float:
    r"""$tL\,(\ln\frac1L)^{2-2/q}\gamma^{2/q}$ of a product of q weights for each input, far along gradient flow of the loss."""
    rng = np.random.default_rng(instance)
    truth = rng.standard_normal(INPUTS)
    x = rng.standard_normal((4 * SAMPLES, INPUTS))
    x = x[np.abs(x @ truth) > 0.7][:SAMPLES]
    rows = x * np.sign(x @ truth)[:, None]
    weights = 0.5 + 0.2 * rng.random((degree, INPUTS))
    weights[0] *= np.sign(truth)
    moving = np.ones((degree, 1)) if trained == "all" else (np.arange(degree) == 0)[:, None].astype(float)
    log_time = -math.inf
    while True:
        small, slope = _slope(weights, rows, moving, loss_tail)
        if small > FAR:
            break
        step = STEP / float((slope**2).sum())
        middle = _slope(weights + 0.5 * step * slope, rows, moving, loss_tail)
        log_time = np.logaddexp(log_time, math.log(step) + middle[0])
        weights = weights + step * middle[1]
    margin = float((rows @ weights.prod(0)).min()) / float((weights**2).sum()) ** (degree / 2)
    return float(math.exp(log_time - small) * small ** (2 - 2 / degree) * margin ** (2 / degree))


def _slope(weights: Array, rows: Array, moving: Array, loss_tail: str) -> tuple[float, Array]:
    r"""$\ln\frac1L$, and its gradient: the flow in the time $\int L\,dt$."""
    outputs = rows @ weights.prod(0)
    logs = -outputs if loss_tail == "exponential" else -20 * np.log(np.maximum(1 + outputs, 1e-3))
    top = logs.max()
    shares = np.exp(logs - top)
    small = -(top + math.log(shares.sum()))
    pull = shares / shares.sum() * (1.0 if loss_tail == "exponential" else 20 / np.maximum(1 + outputs, 1e-3))
    return small, moving * (weights.prod(0) / weights) * (pull @ rows)


law = Law(
    claim="Gradient flow on separable data takes a homogeneous network to a direction where weights and gradient are aligned, a "
    "stationary point of the widest margin; from there on the loss falls with time at a rate set by degree and margin alone.",
    formula=r"t\,L\,\Big(\ln\frac1L\Big)^{2-2/q}\gamma^{2/q}\to\frac1{q^2},\qquad\gamma=\min_i\frac{y_if(x_i)}{|\theta|^q}",
    assumes={
        "all layers are trained": {"trained": "first"},
        "an exponential tail": {"loss_tail": "power"},
        "every sample on its side": None,
    },
    source="lyu2020, Theorem 4.3",
    predict=lambda degree, instance: 1 / degree**2,
    measure=measure,
    cases=({"degree": 1, "instance": 0}, {"degree": 2, "instance": 0}, {"degree": 3, "instance": 0}),
    full=tuple({"degree": q, "instance": 1} for q in (1, 2, 3)),
    # behind the limit stands (2 - 2/q)/ln(1/L), 0.5 %; the direction nears its end at that rate too, slower for larger q
    tolerance=0.05,
    quantity="time times loss, in units of the margin",
    along="degree",
    erratum="The rate 1/t is that of linear models; networks of q layers are faster by a power of log t and slower by q^2.",
    refuted=lambda **case: 1.0,
)
