r"""The covariance of a batch gradient depends on how batches are drawn: independent inclusion scatters about zero."""

import numpy as np

from theodolite.core.law import Law
from theodolite.measure.experiments import enumerated_batches
from theodolite.theory.dynamics import batch_noise as stochastic
from theodolite.theory.dynamics.stationarity import Sampler

SAMPLES, BATCH = 6, 3


def predict(instance: int, sampler: Sampler) -> float:
    return float(stochastic.batch_covariance(_gradients(instance), batch_size=BATCH, sampler=sampler).sum())


def measure(instance: int, sampler: Sampler, *, drawn: Sampler | None = None) -> float:
    """The sum of the covariance's entries over every batch there is; ``drawn`` is another sampler than the one supposed."""
    weights, chances = enumerated_batches(SAMPLES, BATCH, drawn or sampler)
    gradients = weights @ _gradients(instance)
    mean = chances @ gradients
    return float(((gradients - mean).T * chances @ (gradients - mean)).sum())


def _gradients(instance: int) -> np.ndarray:
    return 1.0 + np.random.default_rng(instance).normal(size=(SAMPLES, 4))


law = Law(
    claim="Batches in which each datum lies independently, batches without and with replacement all have the gradient as their "
    "mean, but three different covariances; the first is not centered.",
    formula=r"\frac1B\Big(1-\frac Bm\Big)\overline{gg^\top},\qquad\frac{m-B}{B(m-1)}\overline{(g-\bar g)(g-\bar g)^\top},\qquad "
    r"\frac1B\overline{(g-\bar g)(g-\bar g)^\top}",
    assumes={"the sampler is the one supposed": {"drawn": "with replacement"}},
    source="yaida2019",
    predict=predict,
    measure=measure,
    cases=tuple({"instance": 0, "sampler": s} for s in ("independent", "without replacement", "with replacement")),
    full=({"instance": 1, "sampler": "independent"},),
    tolerance=1e-12,
    quantity="covariance of the batch gradient, summed",
)
