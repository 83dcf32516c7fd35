"""Have the last features of each class collapsed to the corners of a simplex?

The four signs of neural collapse, measured on the inputs of the last linear layer over all the data. With weight decay all four
tend to zero when training continues far beyond zero error; before that they say how far it is. This is a tendency, so there is
a band only for numbers that have bounds.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Reading
from theodolite.core.statistics import left_out_errors, share_error
from theodolite.core.subject import Subject
from theodolite.instruments._common.classes import classes_of, classifier_of
from theodolite.instruments._common.data_visit import features_of
from theodolite.io.batches import Batch
from theodolite.measure.collapse import ClassMoments, Collapse, collapse_of, disagreements, layer_collapse

SIGNS = (
    (
        "NC1, scatter within classes relative to between classes",
        0.1,
        "The samples of a class are nearly one point",
        "The samples of a class still differ",
    ),
    (
        "NC2, spread of the norms of class means",
        0.1,
        "All class means have nearly the same norm",
        "Some class means have larger norms than others",
    ),
    (
        "NC2, distance of the cosines from -1/(C-1)",
        0.05,
        "All class means are equally far apart",
        "Some class means are closer to each other than others",
    ),
    (
        "NC3, distance of the classifier from the class means",
        0.2,
        "The classifier points along the class means",
        "The classifier does not point along the class means; sqrt(2) would be unrelated",
    ),
    (
        "NC4, share not classified by the nearest class mean",
        0.01,
        "The nearest class mean gives the same class as the network",
        "The nearest class mean often gives another class than the network",
    ),
)
"""Each sign with the size below which it counts as collapsed, and what is said below and above it."""


def read(subject: Subject) -> Iterator[Reading]:
    """NC1 to NC4 in front of the classifier; nothing where targets are not classes."""
    classes = classes_of(subject)
    found = None if classes is None else classifier_of(subject, classes)
    if classes is None or found is None:
        return
    name, layer = found

    seen, errors = _collapse_of(subject, name, layer, classes)
    note = f" ({seen.note[0].upper()}{seen.note[1:]}.)" if seen.note else ""
    values = (seen.nc1, seen.nc2_equinorm, seen.nc2_equiangular, seen.nc3, seen.nc4)
    for (quantity, small, below, above), value, error in zip(SIGNS, values, errors, strict=True):
        if value is not None:
            said = f"{below}: collapsed" if value < small else f"{above}: not collapsed"
            meaning = f"{said} in this respect.{note}"
            yield Reading(quantity=quantity, where=name, measured=value, stderr=error, meaning=meaning)


def _collapse_of(subject: Subject, name: str, layer: nn.Linear, classes: int) -> tuple[Collapse, tuple[float, ...]]:
    """From the one visit where that kept a row a sample, with what thinned data cost; else batch by batch."""
    found = features_of(subject)
    h, labels = found.readout.get(name), found.targets
    if h is None or labels is None or len(h) != found.samples:

        def batches() -> Iterator[tuple[Batch, Tensor]]:
            return ((batch, batch.target) for batch in subject.batches())

        return layer_collapse(subject.output, batches, layer, classes=classes), (0.0,) * 5

    def of(rows: Any) -> Collapse:
        moments = ClassMoments.of(h[rows], labels[rows], classes=classes)
        wrong = disagreements(moments, h[rows], layer.weight, layer.bias)
        return collapse_of(moments, weight=layer.weight, nc4=wrong / len(rows))

    def numbers(rows: Any) -> list[float]:
        c = of(rows)
        return [c.nc1, c.nc2_equinorm, c.nc2_equiangular, c.nc3 or 0.0, c.nc4 or 0.0]

    whole = of(torch.arange(len(h)))
    if found.samples >= found.of:
        return whole, (0.0,) * 5
    *others, moved = left_out_errors(numbers, len(h), of=found.of)
    # the samples left out may be classified unlike where none of these is; and with them the means move
    return whole, (*others, math.hypot(moved, share_error(whole.nc4 or 0.0, len(h), of=found.of)))


instrument = Instrument(
    question="Have the features of the classes collapsed to a simplex?",
    read=read,
    needs={"model", "data", "loss"},
    cost="forward",
    sees={"features": 0},
    laws=("simplex-etf-cosines",),
)
