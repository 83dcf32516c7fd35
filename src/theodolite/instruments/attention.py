"""Where does attention look, and do tokens stay different with depth?

For every attention layer: the entropy of its rows relative to uniform attention, its largest score, the heads that attend to
one position, and the position that gets the most attention (a sink), compared with uniform rows. For every block: the rank of
the matrix of tokens. Without residual paths and feed-forward layers, pure attention drives that matrix to rank one, doubly
exponentially with depth (Dong et al. 2021): all tokens become the same. Uniform rows pass no information about position; rows
on a single token pass no gradient to the others (Zhai et al. 2023).
"""

import math
from collections.abc import Iterator

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading, Series
from theodolite.core.statistics import mean_estimate
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded
from theodolite.measure.propagation import ONE_PLACE, AttentionSight, attention_sights

MOST = 32
"""Samples that are looked at: every one gives as many rows as it has tokens."""


def read(subject: Subject) -> Iterator[Reading]:
    """The entropy of attention, layer by layer, and the rank of the tokens by depth."""
    batch = next(subject.batches())
    rows = min(len(batch), MOST, afforded(subject, "forward", passes=2.0, fewest=2))
    few = batch.spread(rows)
    found = attention_sights(subject.model, few.inputs, few.keywords)
    for part in (_entropy, _largest_score, _single, _sink):
        yield from map(part, found)
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
    mean = mean_estimate(sight.entropies)
    share = mean.value
    if share > 0.95:
        said = "It attends to every position equally: it only averages."
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
        meaning=f"1 means equal attention to all tokens, 0 attention to a single one; the mean "
        f"over the rows of {sight.heads} heads. {said}",
    )


def _largest_score(sight: AttentionSight) -> Reading:
    score = sight.largest_score
    # a score so far above the mean of n has at most the weight e^score / n, for the others weigh 1 on average at least
    weight = min(1.0, math.exp(min(score, 700.0)) / sight.tokens)
    return Reading(
        quantity="largest attention score, above the mean of its row",
        where=sight.layer,
        measured=score,
        expected=Band(low=0.0),
        meaning=f"A score this large gives one of {sight.tokens} positions at most {weight:.0%} of the attention. "
        + (
            "Beyond that, float32 rounds all weight onto one position, and no gradient passes: try a smaller learning rate, or "
            "normalized queries and keys."
            if score > -math.log(2**-24) + math.log(sight.tokens)
            else "The softmax is not saturated by rounding."
        ),
    )


def _single(sight: AttentionSight) -> Reading:
    heads = ", ".join(map(str, sight.one_place))
    return Reading(
        quantity="heads that attend to one position",
        where=sight.layer,
        measured=float(len(sight.one_place)),
        expected=Band(0.0, float(sight.heads)),
        meaning=f"Of {sight.heads} heads, those with more than {ONE_PLACE:.0%} of each row's weight on one position"
        + (f": {heads}. They copy one token each and average nothing." if sight.one_place else ": none."),
    )


def _sink(sight: AttentionSight) -> Reading:
    mean = mean_estimate(sight.sink_shares)
    return Reading(
        quantity="largest share of attention on one position",
        where=sight.layer,
        measured=mean.value,
        stderr=mean.stderr,
        expected=Band(0.0, 2 * sight.even_share),  # random rows differ from even ones, but not all in one direction
        against="chance",
        meaning=f"The position is {sight.sink}, counted from 0; uniform attention would give it {sight.even_share:.2g}. "
        + (
            "One head sends its attention there whatever the token: a sink, which trained language models use to do nothing."
            if mean.value > 0.5 and mean.value > 2 * sight.even_share
            else "No position gets most of the attention."
        ),
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
