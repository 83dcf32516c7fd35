"""How noisy is the gradient of a batch, and from which batch size on does noise no longer rule?

The covariance of per-sample gradients has a trace; over the squared norm of the mean gradient it is the simple noise scale,
the batch size at which noise and signal are equal. Both are freed of the bias that a finite data set brings.
"""

from __future__ import annotations

from collections.abc import Iterator

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Reading
from theodolite.core.subject import Subject
from theodolite.measure.dynamics import gradient_moments


def read(subject: Subject) -> Iterator[Reading]:
    """The trace of the covariance, the squared norm of the mean, and their ratio."""
    assert subject.model is not None and subject.loss is not None
    found = gradient_moments(subject.model, subject.loss, subject.data)
    if found is None:
        return
    yield Reading(
        quantity="trace of the gradients' covariance",
        measured=found.scatter.value,
        stderr=found.scatter.stderr,
        meaning=f"Over {found.samples} samples: the mean gradient of a batch of B of them has this over B as its variance.",
    )
    yield Reading(
        quantity="squared norm of the mean gradient",
        measured=found.squared_mean.value,
        stderr=found.squared_mean.stderr,
        meaning="Freed of the share that noise adds to it; below zero means that noise hides it wholly.",
    )
    if found.squared_mean.value > 3 * found.squared_mean.stderr:
        scale = found.scatter.value / found.squared_mean.value
        error = scale * found.squared_mean.stderr / found.squared_mean.value
        yield Reading(
            quantity="simple noise scale",
            measured=scale,
            stderr=error,
            meaning=f"Batches well below {scale:.3g} samples are ruled by noise: there, doubling the batch allows nearly double "
            "the step. Well above it larger batches bring little.",
        )


instrument = Instrument(
    question="How noisy is the gradient of a batch?",
    read=read,
    needs={"model", "data", "loss"},
    cost="backward",
    laws=("constant-step-noise-floor",),
)
