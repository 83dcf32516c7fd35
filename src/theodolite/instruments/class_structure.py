"""How much of the curvature belongs to classes and to pairs of classes?

The Gauss-Newton matrix of the softmax cross-entropy, which is what the network's own probabilities make of its Jacobian,
splits exactly into class, cross-class, equal-class and within-class parts. Their shares of the trace are given, and how much
of the top eigenvectors of the Hessian lies in the span of the class means. Needs targets that are classes.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import cross_entropy

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.classes import classes_of
from theodolite.measure.curvature import Parts, fisher, pair_gradients, pair_structure, top_hessian_eigenvalues, trace
from theodolite.measure.curvature.classes import CELLS
from theodolite.theory.curvature import cross_class_rank

PRODUCTS, MOST_CLASSES = 40, 30
WORDS = {
    "class": "mean gradients of the classes: the steepest directions are those that tell classes apart",
    "cross": "differences between pairs of classes",
    "equal": "gradients for the right label, collinear with those of the classes",
}


def read(subject: Subject) -> Iterator[Reading]:
    """Shares of the trace, the rank of the parts between classes, and the overlap with the top eigenvectors."""
    classes = classes_of(subject)
    if classes is None or classes > MOST_CLASSES:
        return
    assert subject.model is not None
    if classes**2 * sum(p.numel() for p in subject.model.parameters()) > CELLS:  # the means of all pairs would not fit
        return
    means, weights = pair_gradients(subject.model, subject.data, classes=classes)
    present = weights.sum(1) > 0
    parts = pair_structure(means, weights)
    matrix = fisher(subject.model, subject.data)
    total = trace(matrix, products=PRODUCTS)
    left = total.value
    for name, part in parts.traces.items():
        left -= part
        yield _share(
            f"share of the {name} part in the trace of G",
            part / total.value,
            total.stderr * part / total.value**2,
            f"Of the curvature {100 * part / total.value:.0f} % is in the {WORDS[name]}.",
        )
    within = left / total.value
    yield _share(
        "share of the within part in the trace of G",
        within,
        total.stderr / total.value,
        f"{100 * within:.0f} % of the curvature is in how samples of one class differ: the bulk.",
    )
    here = int(present.sum())
    yield Reading(
        quantity="rank of the parts between classes",
        measured=float(parts.rank("class", "cross", "equal", tolerance=1e-9)),
        expected=Band(0.0, float(here * (classes - 1)) if here < classes else float(cross_class_rank(classes))),
        meaning=f"At most C(C-1) = {cross_class_rank(classes)} directions; eigenvalues too small to tell are not counted.",
    )
    if subject.loss is not None:
        yield _overlap(subject, parts, here)


def _overlap(subject: Subject, parts: Parts, count: int) -> Reading:
    assert subject.model is not None
    top = top_hessian_eigenvalues(subject.model, cross_entropy, subject.data, count=count, tolerance=1e-4)
    rows = parts.factors["class"].to(top.vectors)
    span = torch.linalg.qr(rows[rows.norm(dim=1) > 0].T)[0]  # (P, C)
    share = float((top.vectors @ span).square().sum() / count)
    chance = span.shape[1] / top.vectors.shape[1]
    spread = (2 * chance / (top.vectors.shape[1] * count)) ** 0.5  # of the mean of so many random directions
    return Reading(
        quantity="share of the top eigenvectors in the span of class gradients",
        measured=share,
        expected=Band(max(0.0, chance - 3 * spread), min(1.0, chance + 3 * spread)),
        against="chance",
        meaning=f"Of the {count} steepest directions of the cross-entropy {100 * share:.0f} % lies in the span of the mean "
        f"gradients of the classes; of random directions it would be {100 * chance:.2g} %.",
    )


def _share(quantity: str, value: float, error: float, meaning: str) -> Reading:
    return Reading(quantity=quantity, measured=value, stderr=error, meaning=meaning)


instrument = Instrument(
    question="How much of the curvature belongs to classes?",
    read=read,
    needs={"model", "data", "loss"},
    cost="hvp",
    laws=("papyan-three-level", "papyan-second-moment", "papyan-cc-collinear"),
)
