"""How many dimensions does the data fill in each layer?

TwoNN, calibrated against cubes and Gaussians with as many rows, on the output of every layer for at most a thousand samples,
next to the width, the number of directions that hold 90 % of the variance, and alpha-ReQ. Ansuini et al. (2019) saw the
dimension rise in the first layers of trained classifiers and fall in the last ones; the lower it ended, the better they
generalized. That is an observation, not a theorem; what is certain is that it cannot exceed the number of linear directions.
"""

import math
from collections.abc import Iterator
from typing import Any

from threadpoolctl import threadpool_limits  # comes with scikit-learn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Estimate, Reading, Series
from theodolite.core.statistics import left_out_errors
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import features_of
from theodolite.io.workers import one_thread
from theodolite.measure.dimension import (
    dimension_calibrated,
    directions_needed,
    distinct_rows,
    gride_curve,
    nearest_neighbors,
    rank_of,
    twonn_fit,
    variances,
)
from theodolite.measure.propagation._data_visit import Features
from theodolite.measure.spectra import feature_decay

MOST, FEWEST = 1000, 40
"""Samples that are looked at, and distinct rows below which a layer is left out."""

LAYER = 0.5
"""Nominal seconds of one layer, most of them for the calibration."""


def read(subject: Subject) -> Iterator[Reading]:
    """The dimension of the data at the input and after every layer, and the share of the linear hull it fills."""
    found = features_of(subject)
    with one_thread(), threadpool_limits(1):  # thousands of small products, which threads only slow down
        told = _estimates(subject, found)
    if not told:
        return
    series = Series(
        x=tuple(told),
        measured=tuple(value.value for value, _, _ in told.values()),
        stderr=tuple(value.stderr for value, _, _ in told.values()),
        x_label="layer",
        y_label="dimension of the features",
    )
    for name, (value, words, rank) in told.items():
        yield Reading(
            quantity="dimension of the features",
            where=name,
            measured=min(value.value, float(rank)),  # the fit may pass the linear hull by its rounding, the data cannot
            stderr=value.stderr,
            expected=Band(high=float(rank)),
            meaning=words + " " + _shape(told),
            series=series,
        )


def _estimates(subject: Subject, found: Features) -> dict[str, tuple[Estimate, str, int]]:
    """Of each layer the dimension, the other numbers in words, and the rank; of some where no more is paid for."""
    told: dict[str, tuple[Estimate, str, int]] = {}
    for name in _spread(list(found.rows)):
        features = found.rows[name][:MOST]
        rows = distinct_rows(features, fewest=1)
        if len(rows) < FEWEST or not rows.columns:
            continue
        if len(told) > 1 and LAYER * len(told) > subject.allowance.seconds:
            break
        graph = nearest_neighbors(rows, min(16, len(rows) - 1))
        raw, values = twonn_fit(graph).estimate, variances(rows)
        curve = gride_curve(graph)
        decay = feature_decay(rows.points, window=_window(len(values)))
        alpha = f", alpha-ReQ {decay.alpha:.2f}" if math.isfinite(decay.alpha) else ""
        words = (
            f"TwoNN {raw.value:.1f}, at larger scale {curve[-1].value:.1f}; {directions_needed(values, 0.9)} directions hold "
            f"90 % of the variance of {features.shape[1]} features{alpha}."
        )
        value = dimension_calibrated(rows)
        thin = _thinned(rows.points, min(found.of, MOST)) * max(1.0, value.value / raw.value)
        told[name] = Estimate(value.value, math.hypot(value.stderr, thin)), words, rank_of(values, rows)
    return {name: told[name] for name in found.rows if name in told}


def _spread(names: list[str]) -> list[str]:
    """The ends first, then the middle between what is there: whatever the time, the whole depth has been seen."""
    order, step = [*names[:1], *names[-1:]], len(names)
    while step > 1:
        step = (step + 1) // 2
        order += names[::step]
    return list(dict.fromkeys(order))


def _thinned(points: Any, of: int) -> float:
    """What seeing some of the samples alone costs TwoNN, whose scale moves with their number."""
    if len(points) >= of:
        return 0.0
    (error,) = left_out_errors(lambda rows: [twonn_fit(points[rows]).estimate.value], len(points), of=of, blocks=5)
    return error


def _window(count: int) -> tuple[int, int]:
    return (11, 100) if count >= 40 else (2, max(3, count // 2))


def _shape(told: dict[str, tuple[Estimate, str, int]]) -> str:
    """Whether the curve over layers is the hunchback of trained classifiers."""
    values = [value.value for value, _, _ in told.values()]
    if len(values) < 3:
        return ""
    top, first, last = max(values), values[0], values[-1]
    if last < 0.8 * top and values.index(top) not in (0, len(values) - 1) and top > 1.1 * first:
        return "Over the layers it rises and falls again, as in trained classifiers."
    if last < 0.8 * first:
        return "Over the layers it falls: they compress the data."
    return "Over the layers it does not fall: they have not compressed the data; train longer, or check the data."


instrument = Instrument(
    question="How many dimensions does the data fill in each layer?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    sees={"features": 0},
    laws=("twonn-ratio", "calibrated-dimension", "gride-across-scales"),
)
