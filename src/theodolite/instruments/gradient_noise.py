"""How noisy is the gradient of a batch, and above which batch size does noise no longer dominate?

The trace of the covariance of per-sample gradients, divided by the squared norm of the mean gradient, is the simple noise
scale: the batch size at which noise and signal are equal. Both are corrected for the bias of a finite data set.
"""

from collections.abc import Iterator

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded, counter_for, sample_count, thinned
from theodolite.measure import normalizes_batches
from theodolite.measure.dynamics import GradientMoments, gradient_moments, group_moments

GROUP, NUMBERS = 8, 1 << 27
"""Samples of a batch where batches are normalized, and numbers that gradients of batches may take."""

TRIED, OWN = (4, 16), 0.8
"""Samples whose price is counted, and the share of the allowance that all may cost."""


def read(subject: Subject) -> Iterator[Reading]:
    """The trace of the covariance, the squared norm of the mean, and their ratio."""
    found = _moments(subject)
    if found is None:
        return
    yield Reading(
        quantity="trace of the gradients' covariance",
        measured=found.scatter.value,
        stderr=found.scatter.stderr,
        meaning=f"Over {found.samples} samples. The gradient of a batch of B samples has this variance divided by B.",
    )
    yield Reading(
        quantity="squared norm of the mean gradient",
        measured=found.squared_mean.value,
        stderr=found.squared_mean.stderr,
        meaning="Corrected for noise; below zero means that noise hides it completely.",
    )
    if found.scale is not None:
        scale = found.scale.value
        yield Reading(
            quantity="simple noise scale",
            measured=scale,
            stderr=found.scale.stderr,
            meaning=f"Batches well below {scale:.3g} samples are dominated by noise: there, doubling the batch allows "
            "nearly twice the learning rate. Well above it larger batches gain little.",
        )


def _moments(subject: Subject) -> GradientMoments | None:
    """From single samples, each visited twice; from small batches where the model normalizes by its batch."""
    if not normalizes_batches(subject.model):
        return gradient_moments(subject.model, subject.loss, thinned(subject, _samples(subject)))
    size = sum(p.numel() for p in subject.model.parameters() if p.requires_grad)
    groups = max(4, min(sample_count(subject) // GROUP, NUMBERS // size))
    samples = min(GROUP * groups, afforded(subject, "gradient", passes=1.2, fewest=4 * 4))
    data = thinned(subject, samples, batch_size=max(2, min(GROUP, samples // 4)))
    sizes = [len(batch) for batch in data]
    return group_moments(subject.model, subject.loss, [batch for batch in data if len(batch) == max(sizes)])


def _samples(subject: Subject) -> int:
    """How many single samples can be visited: their gradients are kept apart, which is dearer than a batch's and is counted."""
    everything = sample_count(subject)
    most = min(everything, subject.allowance.samples or everything)
    if subject.allowance.is_endless:
        return most
    few, many = min(TRIED[0], most), min(TRIED[1], most)
    prices = []
    for count in (few, many):
        with counter_for(subject) as counter:
            gradient_moments(subject.model, subject.loss, thinned(subject, count))
        prices.append(float(counter.seconds))
    each = max(prices[1] - prices[0], 0.05 * prices[1]) / max(1, many - few)
    return min(most, max(8, int((OWN * subject.allowance.seconds - max(0.0, prices[1] - many * each)) / each)))


instrument = Instrument(
    question="How noisy is the gradient of a batch?",
    read=read,
    needs={"model", "data", "loss"},
    cost="backward",
    sees={"gradient": 20},
    laws=("constant-step-noise-floor",),
)
