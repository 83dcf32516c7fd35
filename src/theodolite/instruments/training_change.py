"""What has training, or fine-tuning, changed in the weights?

For each matrix the difference from its start: how large it is, how few directions carry it (a rank-r adapter shows numerical
rank r), how many of its singular values stand out from noise, and how the tail exponent changed.
"""

import math
from collections.abc import Iterator

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.changes import WeightChange, weight_changes


def read(subject: Subject) -> Iterator[Reading]:
    """Size, rank and spikes of the change of every weight matrix, and the change of its exponent."""
    changes = weight_changes(subject)
    for change in changes:
        yield Reading(
            quantity="size of the change, relative to the start",
            where=change.name,
            measured=change.relative,
            meaning="The Frobenius norm of the difference over that of the start. Far below 0.1: the layer hardly moved.",
        )
    moved = [change for change in changes if change.relative > 0]
    for change in moved:
        yield Reading(
            quantity="rank of the change",
            where=change.name,
            measured=float(change.rank),
            expected=Band(high=float(change.smaller)),
            meaning=f"Stable rank {change.stable_rank:.3g}, effective rank {change.effective_rank:.3g} "
            f"of {change.smaller}, counted above the rounding of the stored weights. An adapter of rank r would show r.",
        )
    for change in moved:
        yield Reading(
            quantity="spikes in the change",
            where=change.name,
            measured=float(change.spikes),
            expected=Band(high=0.0),
            against="chance",
            meaning="Directions of the difference that noise of its size would not have: what was learned, not noise.",
        )
    for change in moved:
        if math.isfinite(change.alpha_before) and math.isfinite(change.alpha_after):
            yield Reading(
                quantity="change of alpha",
                where=change.name,
                measured=change.alpha_after - change.alpha_before,
                meaning=f"From {change.alpha_before:.3g} to {change.alpha_after:.3g}: {_way(change)}.",
            )


def _way(change: WeightChange) -> str:
    if change.alpha_after == change.alpha_before:
        return "the tail is as it was"
    return "the tail has grown heavier" if change.alpha_after < change.alpha_before else "the tail has grown lighter"


instrument = Instrument(
    question="What has training changed in the weights?",
    read=read,
    needs={"weights", "origin"},
    cost="free",
    laws=("bbp-spikes", "marchenko-pastur"),
    of_weights=("changes",),
)
