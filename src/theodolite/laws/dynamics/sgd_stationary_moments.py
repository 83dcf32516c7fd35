r"""SGD on linear regression comes to rest with moments that solve one linear equation, for any step and sampler."""

import numpy as np

from theodolite.core.law import Law
from theodolite.measure.experiments import enumerated_batches
from theodolite.theory.dynamics import stationary_regression
from theodolite.theory.dynamics.stationarity import Sampler

SAMPLES, BATCH, DIMENSION = 6, 2, 3


def predict(sampler: Sampler, lr: float, what: str) -> float:
    x, y = _data()
    found = stationary_regression(x, y, lr=lr, batch_size=BATCH, sampler=sampler)
    return found.dissipation if what == "dissipation" else float(np.trace(found.covariance))


def measure(sampler: Sampler, lr: float, what: str, *, drawn: Sampler | None = None, steps: int = 20_000) -> float:
    """After many steps, over every batch that can be drawn: the trace of the covariance, or lr/2 times the squared slopes."""
    x, y = _data()
    weights, chances = enumerated_batches(SAMPLES, BATCH, drawn or sampler)
    d = DIMENSION
    maps = np.tile(np.eye(d + 1), (len(weights), 1, 1))
    maps[:, :d, :d] -= lr * np.einsum("bk,ki,kj->bij", weights, x, x)
    maps[:, :d, d] = lr * np.einsum("bk,ki,k->bi", weights, x, y)
    step = np.einsum("b,bij,bkl->ikjl", chances, maps, maps).reshape((d + 1) ** 2, (d + 1) ** 2)
    moments = np.zeros((d + 1, d + 1))
    moments[d, d] = 1.0
    moments[:d, :d] = np.eye(d)  # a start away from rest
    moments = (np.linalg.matrix_power(step, steps) @ moments.ravel()).reshape(d + 1, d + 1)
    if what == "dissipation":
        slopes = (np.eye(d + 1)[:d] - maps[:, :d]) / lr  # of a batch, from the position and a one
        return float(0.5 * lr * np.einsum("b,bij,bik,jk->", chances, slopes, slopes, moments))
    mean = moments[:d, d]
    return float(np.trace(moments[:d, :d] - np.outer(mean, mean)))


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(SAMPLES, DIMENSION)), rng.normal(size=SAMPLES)
    return x, y - x @ np.linalg.lstsq(x, y, rcond=None)[0]  # centered: moments about the mean lose no digits


law = Law(
    claim="The stationary covariance of SGD on least squares follows from the second moments of single gradients alone; no small "
    "step is needed.",
    formula=r"HS+SH=\gamma\big[\kappa_1\overline{xx^\top(x^\top Sx+r^2)}+\kappa_2HSH\big]",
    assumes={"the sampler is the one supposed": {"drawn": "independent"}, "a stationary state": {"steps": 4688}},
    source="yaida2019; mandt2017",
    predict=predict,
    measure=measure,
    cases=(
        *(
            {"sampler": s, "lr": r, "what": "covariance"}
            for s in ("without replacement", "with replacement")
            for r in (0.05, 0.2)
        ),
        {"sampler": "without replacement", "lr": 0.2, "what": "dissipation"},
        {"sampler": "with replacement", "lr": 0.05, "what": "dissipation"},
    ),
    full=({"sampler": "independent", "lr": 0.1, "what": "covariance"},),
    tolerance=1e-9,  # what is left of the start after 20,000 steps (by powers of one matrix), and rounding
    quantity="trace of the covariance, or dissipation",
)
