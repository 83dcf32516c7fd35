"""How much of the curvature belongs to classes and to pairs of classes?

The Gauss-Newton matrix of the softmax cross-entropy, built from the Jacobian and the network's own probabilities, splits
exactly into class, cross-class, equal-class and within-class parts. This reports each part's share of the trace, and how much
of the top Hessian eigenvectors lies in the span of the class means. Needs class targets.
"""

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from theodolite.core.instrument import Instrument
from theodolite.core.reading import SIGMAS, Band, Estimate, Reading
from theodolite.core.statistics import parted_error, student_inflation
from theodolite.core.subject import Subject
from theodolite.instruments._common.classes import classes_of
from theodolite.instruments._common.data_visit import afforded, counter_for, pace_of, parted, sample_count, thinned
from theodolite.measure.curvature import (
    Parts,
    extreme_eigenpairs,
    fisher,
    hessian,
    pair_gradients,
    pair_structure,
    trace,
)
from theodolite.measure.curvature.classes import CELLS
from theodolite.theory.curvature import cross_class_rank

PRODUCTS, FEWEST, MOST_CLASSES, OWN = 40, 12, 30, 0.4
"""Products with the matrix, fewer where they are dear, classes, and the share of the allowance before parts are looked at."""
WORDS = {
    "class": "mean gradients of the classes: the steepest directions are those that separate classes",
    "cross": "differences between pairs of classes",
    "equal": "gradients for the right label, parallel to those of the classes",
}


def read(subject: Subject) -> Iterator[Reading]:
    """Shares of the trace, the rank of the parts between classes, and the overlap with the top eigenvectors."""
    classes = _classes(subject)
    if classes is None:
        return
    passes, limit = classes + 3 * PRODUCTS + 6 * classes, subject.allowance
    samples = afforded(subject, "gradient", passes=passes)
    if samples < sample_count(subject):  # parts of them are looked at again
        samples = afforded(subject, "gradient", passes=3 * passes, fewest=min(4 * classes, sample_count(subject)))
    data, share = thinned(subject, samples), 1.0 if samples == sample_count(subject) else OWN
    found = _numbers(subject, data, classes, seconds=share * limit.seconds)
    errors = dict.fromkeys(found.values, 0.0)
    if samples < sample_count(subject) and limit.over():
        errors = {name: abs(value) / SIGMAS for name, value in found.values.items()}
    elif samples < sample_count(subject):
        left_out = 1 - samples / sample_count(subject)
        parts = list(_parts(subject, data, classes, 4 if samples >= 64 else 2))
        errors = {
            name: parted_error(value, [part.get(name, value) for part in parts], left_out=left_out)
            for name, value in found.values.items()
        }
        if "overlap" in errors and len(parts) > 1:  # directions of a whole do not settle as means of its parts do
            spread = statistics.stdev(part.get("overlap", found.values["overlap"]) for part in parts)
            errors["overlap"] = max(
                errors["overlap"], math.sqrt(left_out) * spread * min(student_inflation(len(parts)), 4.0)
            )
    yield from _readings(found, errors)


def _parts(subject: Subject, data: Any, classes: int, count: int) -> Iterator[dict[str, float]]:
    """The numbers of parts of the samples."""
    parts = parted(data, count)
    for part in parts:
        yield _numbers(subject, part, classes, seconds=(1 - OWN) * subject.allowance.seconds / len(parts)).values


def _classes(subject: Subject) -> int | None:
    """How many classes there are; None where there are none, too many, or the means of all pairs would not fit."""
    classes = classes_of(subject)
    if classes is None or classes > MOST_CLASSES:
        return None
    return classes if classes**2 * sum(p.numel() for p in subject.model.parameters()) <= CELLS else None


def finds(subject: Subject) -> bool:
    """Whether the model tells classes apart and the means of all pairs of them fit into memory."""
    return _classes(subject) is not None


@dataclass(frozen=True)
class _Structure:
    """Shares of the trace by part, the rank and the overlap with the top eigenvectors; and what words need."""

    values: dict[str, float]
    total: Estimate
    classes: int
    here: int
    chance: float


def _numbers(subject: Subject, data: Any, classes: int, *, seconds: float) -> _Structure:
    with counter_for(subject) as counter:
        means, weights = pair_gradients(subject.model, data, classes=classes)
        parts, here = pair_structure(means, weights), int((weights.sum(1) > 0).sum())
        matrix, before = fisher(subject.model, data), counter.seconds
        matrix(torch.ones(matrix.size, dtype=matrix.like.dtype, device=matrix.like.device))
    each, left = counter.seconds - before, max(0.0, seconds - counter.seconds)
    products = PRODUCTS if 2 * PRODUCTS * each < left else FEWEST
    total = trace(matrix, products=products)
    values = {name: part / total.value for name, part in parts.traces.items()}
    values["within"] = 1 - sum(values.values())
    values["rank"] = float(parts.rank("class", "cross", "equal", tolerance=1e-9))
    chance = 0.0
    if subject.loss is not None:
        values["overlap"], chance = _overlap(subject, data, parts, here, seconds=max(0.0, left - products * each))
    return _Structure(values, total, classes, here, chance)


def _readings(found: _Structure, errors: dict[str, float]) -> Iterator[Reading]:
    values, total, classes, here = found.values, found.total, found.classes, found.here
    relative = total.stderr / total.value
    for name, words in WORDS.items():
        yield Reading(
            quantity=f"share of the {name} part in the trace of G",
            measured=values[name],
            stderr=math.hypot(relative * values[name], errors[name]),
            meaning=f"Of the curvature {100 * values[name]:.0f} % is in the {words}.",
        )
    yield Reading(
        quantity="share of the within part in the trace of G",
        measured=values["within"],
        stderr=math.hypot(relative, errors["within"]),
        meaning=f"{100 * values['within']:.0f} % of the curvature is in how samples of one class differ: the bulk.",
    )
    yield Reading(
        quantity="rank of the parts between classes",
        measured=values["rank"],
        stderr=errors["rank"],
        expected=Band(0.0, float(here * (classes - 1)) if here < classes else float(cross_class_rank(classes))),
        meaning=f"At most C(C-1) = {cross_class_rank(classes)} directions; eigenvalues within rounding are not counted.",
    )
    if "overlap" in values:
        yield Reading(
            quantity="share of the top eigenvectors in the span of class gradients",
            measured=values["overlap"],
            stderr=errors["overlap"],
            expected=_by_chance(found.chance, here),
            against="chance",
            meaning=f"Of the {here} steepest directions of the cross-entropy {100 * values['overlap']:.0f} % lies in the span of "
            f"the mean gradients of the classes; of random directions it would be {100 * found.chance:.2g} %.",
        )


def _by_chance(share: float, directions: int) -> Band:
    """The mean share of so many random directions, give or take three deviations of it as if all were independent."""
    spread = share * (2 / directions) ** 0.5
    return Band(max(0.0, share - 3 * spread), min(1.0, share + 3 * spread))


def _overlap(subject: Subject, data: Any, parts: Parts, count: int, *, seconds: float) -> tuple[float, float]:
    """Of the steepest directions the share in the span of the classes' mean gradients, and what is chance."""
    operator = hessian(subject.model, cross_entropy, data)
    samples = sum(len(batch) for batch in data)
    most = min(2000, max(count + 2, seconds / max(1e-9, pace_of(subject, "product").pass_seconds("product", samples))))
    top = extreme_eigenpairs(operator, count=count, tolerance=1e-4, most=lambda done: done >= most)
    rows = parts.factors["class"].to(top.vectors)
    span = torch.linalg.qr(rows[rows.norm(dim=1) > 0].T)[0]  # (P, C)
    return float((top.vectors @ span).square().sum() / count), span.shape[1] / top.vectors.shape[1]


instrument = Instrument(
    question="How much of the curvature belongs to classes?",
    read=read,
    finds=finds,
    needs={"model", "data", "loss"},
    cost="hvp",
    sees={"gradient": 400},
    laws=("papyan-three-level", "papyan-second-moment", "papyan-cc-collinear"),
)
