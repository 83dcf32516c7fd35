"""How sharp is the loss, compared with the stability limit of the learning rate?

The largest Hessian eigenvalue over all the data, with its error bound, next to (2 + 2 momentum) / lr. Full-batch gradient
descent drives it up to that limit and keeps it there; above the limit a step increases the loss.
"""

import math
from collections.abc import Iterator

from torch import Tensor

from theodolite.core.instrument import Instrument
from theodolite.core.reading import SIGMAS, Band, Estimate, Reading
from theodolite.core.statistics import student_inflation
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded, parted, passes_afforded, sample_count, thinned
from theodolite.io.batches import Batches
from theodolite.measure import batch_statistics
from theodolite.measure.curvature import Eigenpairs, extreme_eigenpairs, hessian
from theodolite.theory.dynamics import step_size_edge

PRODUCTS, FEWEST, PARTS, WIDEST = 6, 4, 4, 4.0
"""Products with the Hessian, and samples, below which nothing is said; parts that tell how samples differ, and by how much
an error from so few of them is widened at most."""


def read(subject: Subject) -> Iterator[Reading]:
    """The largest eigenvalue beside the edge."""
    assert subject.lr is not None
    with batch_statistics(subject.model):  # the step is taken in training mode
        top, found = _largest(subject)
    value, error = found.value, found.stderr
    edge = step_size_edge(subject.lr, momentum=subject.momentum)
    yield Reading(
        quantity="largest Hessian eigenvalue",
        measured=value,
        stderr=error,
        expected=Band(high=edge),
        against="health",
        meaning=sharpness_meaning(value / edge, converged=top.converged),
    )


def _largest(subject: Subject) -> tuple[Eigenpairs, Estimate]:
    """The largest eigenvalue over all the data; within a budget over some, beside what others say of its direction."""
    all_of = sample_count(subject)
    samples = afforded(subject, "product", passes=PRODUCTS + 2, share=0.8, fewest=min(FEWEST, all_of))
    if samples >= all_of:
        operator = hessian(subject.model, subject.loss, subject.data)
        most = max(5, min(2000, passes_afforded(subject, "product", all_of)))
        top = extreme_eigenpairs(operator, count=1, most=lambda done: done >= most)
        return top, Estimate(top.values[0], top.errors[0] / SIGMAS)  # a bound, which three standard errors must cover
    own, others = parted(thinned(subject, min(all_of, 2 * samples), batch_size=min(512, 2 * samples)))
    operator, tolerance = hessian(subject.model, subject.loss, own), 1e-3
    most = max(PRODUCTS, min(60, passes_afforded(subject, "product", samples, share=0.8)))
    top = extreme_eigenpairs(operator, count=1, tolerance=tolerance, most=lambda done: done >= most)
    # the samples at hand flatter their own steepest direction; samples not used for finding it do not
    outside = _along(subject, top.vectors[0], others)
    gap = abs(top.values[0] - outside.value) / 2
    # which samples were seen, of both halves
    chance = outside.stderr * math.sqrt((1 - min(1.0, 2 * samples / all_of)) / 2)
    value = (top.values[0] + outside.value) / 2
    return top, Estimate(value, math.hypot(gap, chance, top.errors[0] / SIGMAS))


def _along(subject: Subject, direction: Tensor, data: Batches) -> Estimate:
    """The curvature along a direction, part by part of the samples: their mean, and its error from their spread."""
    samples = sum(len(batch) for batch in data)
    # a batch that is normalized by itself must not be too small
    parts = parted(data, PARTS if samples >= 4 * PARTS else 2)
    found = [float(direction @ hessian(subject.model, subject.loss, part)(direction)) for part in parts]
    value = sum(found) / len(found)
    if len(found) < 2:
        return Estimate(value, abs(value))
    spread = math.sqrt(sum((each - value) ** 2 for each in found) / (len(found) - 1) / len(found))
    return Estimate(value, spread * min(student_inflation(len(found)), WIDEST))


def sharpness_meaning(ratio: float, *, converged: bool = True, optimizer: str = "descent") -> str:
    """What the curvature over that of the edge says; what to do about it is for a diagnosis, which tries it out."""
    doubt = "" if converged else " The search did not converge: the error bound is wide."
    if ratio <= 0:
        return (
            "The loss curves upward in no direction: a plateau, a saddle or a dead network; the learning rate has no "
            "limit here." + doubt
        )
    if ratio < 0.9:
        return (
            f"At {100 * ratio:.2g} % of the stability limit of this learning rate: steps of full-batch {optimizer} are stable."
            + doubt
        )
    if ratio <= 1.1:
        return "At the stability limit: the loss may rise and fall, and training continues there." + doubt
    return (
        f"{ratio:.2g} times above the stability limit: a step of full-batch {optimizer} increases the loss along this direction."
        + doubt
    )


instrument = Instrument(
    question="How sharp is the loss, compared with the stability limit?",
    read=read,
    needs={"model", "data", "loss", "lr"},
    cost="hvp",
    sees={"product": 32},
    laws=("edge-of-stability", "edge-with-momentum", "quadratic-step-limit"),
)
