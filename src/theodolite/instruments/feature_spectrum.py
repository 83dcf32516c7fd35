"""How fast do the variances of each layer's features fall with rank (alpha-ReQ)?

The exponent of the eigenvalues of the centered covariance over all the data, by weighted least squares over a stated window of
ranks, with its error and the values of neighboring windows. Convolutional and sequence features are averaged over positions.
Agrawal et al. (2022) found the best representations near 1; that is an observation, not a theorem, so there is no band.
"""

import math
from collections.abc import Iterator
from typing import Any

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading, Series
from theodolite.core.statistics import left_out_errors
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import features_of
from theodolite.measure.propagation._data_visit import Features
from theodolite.measure.spectra import FeatureCovariance, feature_decay


def read(subject: Subject) -> Iterator[Reading]:
    """The decay exponent and the participation ratio of every layer's features."""
    found = features_of(subject)
    told = {name: covariance for name, covariance in found.covariances.items() if covariance.count > 2}
    thinned = {name: _errors(found, name, _window(covariance)) for name, covariance in told.items()}
    for name, covariance in told.items():
        reading = _exponent(name, covariance, thinned[name][0])
        if reading is not None:
            yield reading
    for name, covariance in told.items():
        decay = feature_decay(covariance)
        if math.isfinite(decay.participation_ratio):
            most = float(min(decay.dimension, decay.samples - 1))
            yield Reading(
                quantity="participation ratio of the features",
                where=name,
                measured=decay.participation_ratio,
                stderr=thinned[name][1],
                expected=Band(high=most),
                meaning=f"The variance is spread over about {decay.participation_ratio:.3g} of {decay.dimension} directions.",
            )


def _window(covariance: FeatureCovariance) -> tuple[int, int]:
    most = min(len(covariance.mean), covariance.count - 1)
    return (11, 100) if most >= 40 else (2, max(3, most // 2))


def _errors(found: Features, name: str, window: tuple[int, int]) -> tuple[float, float]:
    """What seeing some of the samples alone costs the exponent and the participation ratio."""
    rows = found.rows[name]
    if found.samples >= found.of or len(rows) < 8:
        return 0.0, 0.0

    def both(chosen: Any) -> list[float]:
        decay = feature_decay(rows[chosen], window=window)
        return [decay.alpha if math.isfinite(decay.alpha) else 0.0, decay.participation_ratio]

    first, second = left_out_errors(both, len(rows), of=found.of)
    return first, second


def _exponent(name: str, covariance: FeatureCovariance, thinned: float) -> Reading | None:
    decay = feature_decay(covariance, window=_window(covariance))
    if not math.isfinite(decay.alpha):
        return None
    note = f" {decay.note[0].upper()}{decay.note[1:]}." if decay.note else ""
    values = covariance.eigenvalues.flip(0).cpu()
    values = values[values > 1e-14 * values[0]]
    first, last = decay.window[0], min(decay.window[1], len(values))
    middle = math.sqrt(first * last)
    anchor = values[min(len(values), max(1, round(middle))) - 1].item()
    ranks = range(1, len(values) + 1)
    line = [anchor * (rank / middle) ** -decay.alpha if first <= rank <= last else math.nan for rank in ranks]
    return Reading(
        quantity="alpha-ReQ, decay of the feature spectrum",
        where=name,
        measured=decay.alpha,
        stderr=math.hypot(decay.stderr, thinned),
        meaning=f"Ranks {first} to {last}, R² {decay.r_squared:.3f}; neighboring windows give {decay.low:.3g} to "
        f"{decay.high:.3g}, which shows its error. Far above 1: a few directions dominate; far below: noise does.{note}",
        series=Series(
            x=tuple(float(rank) for rank in ranks),
            measured=tuple(values.tolist()),
            x_label="rank",
            y_label="variance",
            log="xy",
            line=tuple(line),
            line_label=f"slope −{decay.alpha:.2f}",
        ),
    )


instrument = Instrument(
    question="How fast do the features' variances fall with rank?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    sees={"features": 0},
    laws=("rank-and-density-exponents", "relu-flattens"),
)
