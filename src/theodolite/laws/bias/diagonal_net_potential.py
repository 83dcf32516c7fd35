r"""Of all interpolants a diagonal network finds the one of least $\sum\alpha^2\theta_0^2\,q(\beta/\alpha^2\theta_0^2)$."""

import numpy as np

from theodolite.construct.small_problems import diagonal_slope, interpolation
from theodolite.law import Law
from theodolite.measure.flows import flow_limit
from theodolite.reading import Band
from theodolite.theory.diagonal_nets import least_potential

PROBE = np.cos(np.arange(10))


def predict(alpha: float) -> Band:
    x, y, shape = interpolation(1)
    return Band.around(float(PROBE @ least_potential(x, y, scale=alpha, shape=shape)), abs=1e-6)


def measure(alpha: float, *, tilt: float = 1.0, stronger: float = 0.0) -> float:
    """A component of the flow's end; ``stronger`` makes layers of unequal power, plus^2 - minus^2 times 1 + that."""
    x, y, shape = interpolation(1)
    start = alpha * np.concatenate([shape, tilt * shape])
    if stronger:
        x, y = x * (1 + stronger * np.arange(10) / 10), y
    plus, minus = np.split(flow_limit(diagonal_slope(x, y), start), 2)
    return float(PROBE @ (plus**2 - minus**2))


law = Law(
    claim="The start alone decides which interpolant gradient flow on a diagonal network finds: the one of least potential, for "
    "every scale of the start.",
    formula=r"\beta_\infty=\arg\min_{X\beta=y}\sum_i\alpha^2\theta_{0i}^2\,q\!\Big(\frac{\beta_i}{\alpha^2\theta_{0i}^2}\Big),"
    r"\quad q(z)=2-\sqrt{4+z^2}+z\,\mathrm{arcsinh}\tfrac z2",
    assumes={"both halves start alike": {"tilt": 1.3}, "the stated features": {"stronger": 0.5}},
    source="woodworth2020, Theorem 1",
    predict=predict,
    measure=measure,
    cases=({"alpha": 0.001}, {"alpha": 0.1}, {"alpha": 1.0}, {"alpha": 10.0}),
    full=({"alpha": 1e-4}, {"alpha": 100.0}),
    quantity="a component of the end",
    along="alpha",
)
