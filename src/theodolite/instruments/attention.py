"""Where does attention look, and do tokens stay different with depth?

For every attention layer: the entropy of its rows relative to uniform attention, if its weights are accessible. For every
block: the rank of the matrix of tokens. Without residual paths and feed-forward layers, pure attention drives that matrix to
rank one, doubly exponentially with depth (Dong et al. 2021): all tokens become the same. Uniform rows pass no information about
place; rows on a single token pass no gradient to the others (Zhai et al. 2023).
"""

import math
from collections.abc import Iterator

import torch

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading, Series
from theodolite.core.statistics import mean_estimate
from theodolite.core.subject import Subject
from theodolite.instruments._common.visit import afforded, picked
from theodolite.measure.propagation import AttentionSight, attention_sights

MOST = 32
"""Samples that are looked at: every one gives as many rows as it has tokens."""


def read(subject: Subject) -> Iterator[Reading]:
    """The entropy of attention, layer by layer, and the rank of the tokens by depth."""
    assert subject.model is not None
    batch = next(subject.batches())
    rows = min(len(batch), MOST, afforded(subject, "forward", passes=2.0, fewest=2))
    few = picked(batch, torch.arange(0, len(batch), max(1, len(batch) // rows))[:rows])
    found = attention_sights(subject.model, few.inputs, few.keywords)
    for sight in found:
        if sight.entropies is not None:
            yield _entropy(sight)
    told = [sight for sight in found if len(sight.ranks) > 1]
    means = [mean_estimate(sight.ranks) for sight in told]
    series = Series(
        x=tuple(sight.layer for sight in told),
        measured=tuple(mean.value for mean in means),
        stderr=tuple(mean.stderr for mean in means),
        x_label="layer",
        y_label="rank of the tokens",
    )
    for sight, mean in zip(told, means, strict=True):
        most = float(min(sight.tokens, sight.width))
        yield Reading(
            quantity="effective rank of the tokens",
            where=sight.layer,
            measured=mean.value,
            stderr=mean.stderr,
            expected=Band(1.0, most),
            meaning=f"As if {mean.value:.3g} of {sight.tokens} tokens pointed in independent directions, after this layer "
            f"and its residual sum. {_by_rank(means[0].value, mean.value)}",
            series=series,
        )


def _entropy(sight: AttentionSight) -> Reading:
    assert sight.entropies is not None
    mean = mean_estimate(sight.entropies)
    share = mean.value
    if share > 0.95:
        said = "It attends to every place equally: it only averages."
    elif share < 0.1:
        said = (
            "It attends to a single token: its scores have grown large. Try a smaller learning rate, or normalized queries "
            "and keys."
        )
    else:
        said = "It attends to some tokens more than to others."
    return Reading(
        quantity="entropy of attention, relative to the maximum",
        where=sight.layer,
        measured=share,
        stderr=mean.stderr,
        expected=Band(0.0, 1.0),
        meaning=f"On average each token attends to {sight.tokens**share:.3g} of {sight.tokens}, mean over {sight.heads} "
        f"heads. {said}",
    )


def _by_rank(first: float, here: float) -> str:
    if here < 2:
        return "All tokens are nearly the same: their differences are lost in rounding."
    if here < 0.25 * first:
        return "Far fewer than in the first such layer: tokens become the same with depth."
    return "The tokens stay different." if math.isfinite(here) else ""


instrument = Instrument(
    question="Where does attention look, and do tokens stay different?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    sees={"forward": 16},
    laws=("angle-at-criticality",),  # how depth makes what goes through alike
)
