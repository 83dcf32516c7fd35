r"""A quadratic model on one datum trains as a few numbers do: $g_i'=(1-\gamma rf_i)g_i$ in the eigenbasis of its curvature."""

import numpy as np

from theodolite.core.law import Law
from theodolite.theory.dynamics import OneDatum

SIZE, TARGET = 24, 0.4


def predict(instance: int, steps: int) -> float:
    F, g, lr = _problem(instance)
    values, vectors = np.linalg.eigh(F)
    return OneDatum(values, vectors.T @ g, 1.0).path(target=TARGET, lr=lr, steps=steps).outputs[-1]


def measure(instance: int, steps: int, *, second: float = 0.0, cubic: float = 0.0) -> float:
    """The output after descent on all parameters; with ``second`` another datum pulls too, with ``cubic`` it is not quadratic."""
    F, g, lr = _problem(instance)
    d = np.zeros(SIZE)
    for _ in range(steps):
        r = 1.0 + g @ d + 0.5 * d @ F @ d + cubic * (d**3).sum() - TARGET
        d = d - lr * r * (g + F @ d + 3 * cubic * d**2) - lr * second * (d.sum() - 1.0)
    return float(1.0 + g @ d + 0.5 * d @ F @ d + cubic * (d**3).sum())


def _problem(instance: int) -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(instance)
    raw = rng.normal(size=(SIZE, SIZE))
    g = rng.normal(size=SIZE) / SIZE**0.5
    return 0.05 * (raw + raw.T) / SIZE**0.5, g, 2.4 / float(g @ g)


law = Law(
    claim="Descent on a quadratic model with one datum never leaves the eigendirections of its second derivative: each part of "
    "the gradient has its own factor, and output and curvature are sums over them.",
    formula=r"g_i'=(1-\gamma rf_i)g_i,\qquad z'=z-\gamma r\lambda+\tfrac12\gamma^2r^2\sum f_ig_i^2,\qquad\lambda=\sum g_i^2",
    assumes={"one datum": {"second": 7.1e-11}, "a quadratic model": {"cubic": 6e-11}},
    source="lewkowycz2020",
    predict=predict,
    measure=measure,
    cases=({"instance": 0, "steps": 3}, {"instance": 1, "steps": 8}, {"instance": 2, "steps": 40}),
    tolerance=1e-9,  # rounding, which steps beyond the edge enlarge by 1.4 each
    quantity="output after the steps",
)
