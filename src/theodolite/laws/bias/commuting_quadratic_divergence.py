r"""Gradient flow on quadratic models whose curvatures commute projects in Kullback-Leibler divergence."""

import numpy as np

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import flow_limit
from theodolite.theory.bias import least_divergence

SIZE, SAMPLES = 6, 3


def predict(instance: int) -> Band:
    readouts, y, _, start = _problem(instance)
    return Band.around(float(least_divergence(readouts, y, start=start**2).sum()), abs=1e-6)


def measure(instance: int, *, turn: float = 0.0, linear: float = 0.0) -> float:
    """The sum of squares at the flow's end; ``turn`` rotates the first curvature, ``linear`` adds linear features."""
    readouts, y, basis, start = _problem(instance)
    curvatures = np.einsum("ij,aj,kj->aik", basis, readouts, basis)
    if turn:
        plane = np.eye(SIZE)
        plane[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        curvatures[0] = plane @ curvatures[0] @ plane.T

    def slope(theta: np.ndarray) -> np.ndarray:
        bent = curvatures @ theta + linear * basis[:SAMPLES]
        r = 0.5 * np.einsum("ai,i->a", curvatures @ theta, theta) + linear * basis[:SAMPLES] @ theta - y
        return np.asarray(r @ bent)

    return float((flow_limit(slope, basis @ start) ** 2).sum())


def _problem(instance: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(instance)
    readouts, basis = rng.normal(size=(SAMPLES, SIZE)), np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
    return readouts, 0.5 * readouts @ rng.uniform(0.3, 2.0, size=SIZE), basis, rng.uniform(0.5, 1.0, size=SIZE)


law = Law(
    claim="Of all quadratic models those with commuting curvatures have a known bias: each eigendirection's square grows "
    "exponentially, so the end is the interpolant nearest to the start in Kullback-Leibler divergence.",
    formula=r"b_\infty=\arg\min_{b\geq0,\,\frac12Mb=y}\sum_jb_j\ln\frac{b_j}{b_{0j}}-b_j+b_{0j},\qquad b=(U^\top\theta)^2",
    assumes={"curvatures that commute": {"turn": 1.2e-05}, "no linear part": {"linear": 5.1e-07}},
    source="woodworth2020",
    predict=predict,
    measure=measure,
    cases=({"instance": 0}, {"instance": 1}, {"instance": 2}),
    full=({"instance": 3},),
    quantity="sum of squares at the end",
)
