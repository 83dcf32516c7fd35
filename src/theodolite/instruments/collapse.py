"""Have the last features of the classes collapsed to the corners of a simplex?

The four signs of neural collapse, of what the last linear layer is given, over all the data. All tend to zero in training
on far beyond zero error with weight decay; before that they say how far it is. That is a tendency, so there is no band but
where a number has bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.classes import classes_of, classifier_of
from theodolite.io.batches import Batch
from theodolite.measure.collapse import layer_collapse


def read(subject: Subject) -> Iterator[Reading]:
    """NC1 to NC4 in front of the classifier; nothing where targets are not classes."""
    classes = classes_of(subject)
    found = None if classes is None else classifier_of(subject, classes)
    if classes is None or found is None:
        return
    name, layer = found

    def batches() -> Iterator[tuple[Batch, Tensor]]:
        return ((batch, batch.target) for batch in subject.batches())

    seen = layer_collapse(subject.output, batches, layer, classes=classes)
    note = f" ({seen.note[0].upper()}{seen.note[1:]}.)" if seen.note else ""
    rows: tuple[tuple[str, float | None, str], ...] = (
        (
            "NC1, scatter within classes over that between",
            seen.nc1,
            _by_size(
                seen.nc1, 0.1, "The samples of a class lie nearly in one point", "Samples of a class still differ"
            ),
        ),
        (
            "NC2, spread of the norms of class means",
            seen.nc2_equinorm,
            _by_size(
                seen.nc2_equinorm, 0.1, "All classes lie equally far out", "Some classes lie farther out than others"
            ),
        ),
        (
            "NC2, distance of cosines from -1/(C-1)",
            seen.nc2_equiangular,
            _by_size(
                seen.nc2_equiangular, 0.05, "All classes lie equally far apart", "Some classes lie nearer to each other"
            ),
        ),
        (
            "NC3, distance of classifier and class means",
            seen.nc3,
            _by_size(
                seen.nc3 or 0.0,
                0.2,
                "The classifier has turned into the class means",
                "The classifier points elsewhere than the class means; sqrt(2) is unrelated",
            ),
        ),
        (
            "NC4, share classified unlike the nearest mean",
            seen.nc4,
            _by_size(
                seen.nc4 or 0.0,
                0.01,
                "The nearest class mean decides as the network does",
                "The network decides otherwise than by the nearest class mean",
            ),
        ),
    )
    for quantity, value, meaning in rows:
        if value is not None:
            yield Reading(quantity=quantity, where=name, measured=value, meaning=meaning + note)


def _by_size(value: float, small: float, below: str, above: str) -> str:
    return f"{below}: collapsed in this respect." if value < small else f"{above}: not collapsed in this respect."


instrument = Instrument(
    question="Have the features of the classes collapsed to a simplex?",
    read=read,
    needs={"model", "data", "loss"},
    cost="forward",
    laws=("simplex-etf-cosines",),
)
