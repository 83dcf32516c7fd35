"""How does the residual stream grow from layer to layer, compared with branches of random weights?

A branch of random weights is independent of the stream that it is added to, so their mean squares add: after L equal branches the
stream has grown by L times one of them, and each later branch changes it less. The band is three standard deviations of the
overlap of two independent vectors of this width. Branches that line up with the stream, or against it, have learned to.
"""

import math
from collections.abc import Iterator, Sequence

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading, Series
from theodolite.core.statistics import mean_estimate
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded
from theodolite.measure.dynamics import StreamSum, residual_sums

MOST = 8
"""Samples that are looked at: autograd keeps all that they leave behind in one pass."""


def read(subject: Subject) -> Iterator[Reading]:
    """The mean square of the stream after each residual sum, and how much it has grown."""
    batch = next(subject.batches())
    rows = min(len(batch), MOST, afforded(subject, "gradient", passes=2.0, fewest=2))
    few = batch.spread(rows)
    sums = [one for one in residual_sums(subject.model, few.inputs, few.keywords) if min(one.stream) > 0]
    totals = [mean_estimate(one.total) for one in sums]
    series = Series(
        x=tuple(_place(one) for one in sums),
        measured=tuple(total.value for total in totals),
        stderr=tuple(total.stderr for total in totals),
        x_label="residual sum",
        y_label="mean square",
    )
    for one, total in zip(sums, totals, strict=True):
        stream, branch, spread = _parts(one)
        band = Band(max(0.0, stream + branch - 3 * spread), stream + branch + 3 * spread)
        gain = f"Its branch has {math.sqrt(branch / stream):.2g} times the length of the stream it is added to. "
        yield Reading(
            quantity="mean square of the residual stream",
            where=_place(one),
            measured=total.value,
            expected=band,
            against="chance",
            meaning=gain + _meaning(total.value, band),
            series=series,
        )
    if len(sums) > 1 and all(one.goes_on for one in sums[1:]):
        yield _growth(sums, totals[-1].value)


def _growth(sums: Sequence[StreamSum], last: float) -> Reading:
    parts = [_parts(one) for one in sums]
    start = parts[0][0]
    free = (start + sum(branch for _, branch, _ in parts)) / start
    spread = math.sqrt(sum(spread**2 for _, _, spread in parts)) / start
    band = Band(max(0.0, free - 3 * spread), free + 3 * spread)
    return Reading(
        quantity="growth of the residual stream",
        where=f"over {len(sums)} branches",
        measured=last / start,
        expected=band,
        against="chance",
        meaning=f"The mean square of the last sum over that of the stream before the first; independent branches of these sizes "
        f"give {free:.3g}. {_meaning(last / start, band)}"
        + (" The first branches hardly count in the end: scale branches by 1/sqrt(2 L)." if free > 100 else ""),
    )


def _parts(one: StreamSum) -> tuple[float, float, float]:
    """Mean squares of stream and branch, and the standard deviation of twice the overlap of independent ones."""
    stream, branch = (mean_estimate(values).value for values in (one.stream, one.branch))
    return stream, branch, 2 * math.sqrt(stream * branch / one.width)


def _place(one: StreamSum) -> str:
    return one.module or one.where or "the network"


def _meaning(measured: float, band: Band) -> str:
    if measured in band:
        return "Stream and branch add up like independent ones, as with random weights."
    along = "lines up with the stream" if measured > band.high else "takes away from the stream"
    return f"What is added {along}, which random weights do not: in a trained network this is learning."


instrument = Instrument(
    question="How does the residual stream grow from layer to layer?",
    read=read,
    needs={"model", "data"},
    cost="backward",
    sees={"gradient": 4},
    laws=("residual-kernel", "residual-branches"),
)
