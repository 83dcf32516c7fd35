r"""The trace of a batch gradient's covariance follows from the scatter of single gradients and their mean, sampler by sampler."""

import numpy as np

from theodolite.core.law import Law
from theodolite.measure.experiments import enumerated_batches
from theodolite.theory.dynamics import batch_scatter
from theodolite.theory.dynamics.stationarity import Sampler

SAMPLES = 6


def predict(batch: int, sampler: Sampler) -> float:
    g = _gradients()
    scatter = float(np.square(g - g.mean(0)).sum() / (SAMPLES - 1))
    squared_mean = float(np.square(g.mean(0)).sum())
    return batch_scatter(scatter, squared_mean, batch_size=batch, samples=SAMPLES, sampler=sampler)


def measure(batch: int, sampler: Sampler, *, drawn: Sampler | None = None) -> float:
    """The mean squared distance of the batch gradient to its mean over every batch there is."""
    weights, chances = enumerated_batches(SAMPLES, batch, drawn or sampler)
    gradients = weights @ _gradients()
    return float(chances @ np.square(gradients - chances @ gradients).sum(1))


def _gradients() -> np.ndarray:
    return 0.5 + np.random.default_rng(0).normal(size=(SAMPLES, 4))


law = Law(
    claim="Two numbers of single gradients, their scatter and their squared mean, give the scatter of batches of any size, and "
    "each way of drawing batches has its own formula.",
    formula=r"\tfrac1B\big(1-\tfrac Bm\big)\mathrm{tr}\Sigma,\qquad\tfrac1B\tfrac{m-1}m\mathrm{tr}\Sigma,\qquad"
    r"\tfrac1B\big(1-\tfrac Bm\big)\big(\tfrac{m-1}m\mathrm{tr}\Sigma+|\bar g|^2\big)",
    assumes={"the sampler is the one supposed": {"drawn": "with replacement"}},
    source="yaida2019; mccandlish2018",
    predict=predict,
    measure=measure,
    cases=(
        {"batch": 2, "sampler": "without replacement"},
        {"batch": 4, "sampler": "without replacement"},
        {"batch": 2, "sampler": "with replacement"},
        {"batch": 3, "sampler": "independent"},
    ),
    tolerance=1e-12,
    quantity="scatter of the batch gradient",
)
