r"""Of all interpolants a diagonal network finds the one of least $\sum\alpha^2\theta_0^2\,q(\beta/\alpha^2\theta_0^2)$."""

import numpy as np

from theodolite.construct.dynamics import interpolation
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import flow_limit
from theodolite.theory.bias import least_potential

PROBE = np.cos(np.arange(10))


def predict(alpha: float) -> Band:
    x, y, shape = interpolation(1)
    return Band.around(float(PROBE @ least_potential(x, y, scale=alpha, initial_shape=shape)), abs=1e-6)


def measure(alpha: float, *, tilt: float = 1.0, layers: int = 2) -> float:
    """A component of the flow's end; ``layers`` is the power of both halves."""
    x, y, shape = interpolation(1)

    def slope(theta: np.ndarray) -> np.ndarray:
        plus, minus = np.split(theta, 2)
        pull = layers * x.T @ (x @ (plus**layers - minus**layers) - y)
        return np.concatenate([pull * plus ** (layers - 1), -pull * minus ** (layers - 1)])

    start = alpha * np.concatenate([shape, tilt * shape])
    plus, minus = np.split(flow_limit(slope, start ** (2 / layers)), 2)  # the same size of weights for every depth
    return float(PROBE @ (plus**layers - minus**layers))


law = Law(
    claim="The start alone decides which interpolant gradient flow on a diagonal network finds: the one of least potential, for "
    "every scale of the start.",
    formula=r"\beta_\infty=\arg\min_{X\beta=y}\sum_i\alpha^2\theta_{0i}^2\,q\!\Big(\frac{\beta_i}{\alpha^2\theta_{0i}^2}\Big),"
    r"\quad q(z)=2-\sqrt{4+z^2}+z\,\mathrm{arcsinh}\tfrac z2",
    assumes={"both halves start alike": {"tilt": 1.0 + 1.7e-08}, "two layers": {"layers": 3}},
    source="woodworth2020, Theorem 1",
    predict=predict,
    measure=measure,
    cases=({"alpha": 0.001}, {"alpha": 0.1}, {"alpha": 1.0}, {"alpha": 10.0}),
    full=({"alpha": 1e-4}, {"alpha": 100.0}),
    quantity="a component of the end",
    along="alpha",
)
