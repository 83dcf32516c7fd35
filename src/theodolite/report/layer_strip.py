"""The network as one strip: a column a layer, with its signal, differences of inputs, gradient, change, dimension, spectrum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theodolite.report.drawing.scales import Scale
from theodolite.report.opening import StripCell, StripLayer
from theodolite.report.words import expectation, plain

if TYPE_CHECKING:
    from theodolite.core.reading import Band, Reading
    from theodolite.core.subject import Subject

FAR = 1e4
"""A factor by which a sick network's number may change over the layers before it is colored."""

ROOM = 10**0.5
"""A factor up and down from the middle layer that a row has room for, though its layers be alike."""

READ = {
    "change": "size of the change, relative to the start",
    "dimension": "dimension of the features",
    "alpha": "alpha, exponent of the tail",
    "stable rank": "stable rank",
}
"""Rows that are readings of instruments, where these were asked."""

MOST = 400
"""Layers that are drawn; of more, evenly spread ones."""


def strip_of(subject: Subject, readings: Sequence[Reading], *, healthy: bool) -> tuple[StripLayer, ...]:
    """The layers in the order in which they ran; of weights alone, the matrices in the order of their file."""
    if subject.model is None:
        return _weight_strip(subject, readings)
    from theodolite.evidence.layer_signals import signals

    signs = signals(subject)
    if signs is None or not signs.layers:
        return ()
    layers = signs.layers[:: math.ceil(len(signs.layers) / MOST)]
    rows = {
        "signal": [layer.mean_square for layer in layers],
        "differences": [layer.unlike for layer in layers],
        "gradient": [math.nan if layer.gradient_norm is None else layer.gradient_norm for layer in layers],
    }
    own = len(rows)
    bands = {"signal": _bands(readings, "mean square of the signal")}
    for name, quantity in READ.items():
        told = {_layer(reading.where): reading.measured for reading in readings if reading.quantity == quantity}
        if told:
            rows[name] = [told.get(layer.name, math.nan) for layer in layers]
            bands[name] = _bands(readings, quantity)
    cells = {
        name: cells_of(
            name,
            values,
            None if healthy or place >= own else values[-(name == "gradient")],
            [bands.get(name, {}).get(layer.name) for layer in layers],
        )
        for place, (name, values) in enumerate(rows.items())
    }
    return tuple(
        StripLayer(layer.name, _kind(subject, layer), tuple(own[place] for own in cells.values()))
        for place, layer in enumerate(layers)
    )


def _bands(readings: Sequence[Reading], quantity: str) -> dict[str, Band | None]:
    """What theory expects of a quantity, layer by layer."""
    return {_layer(reading.where): reading.expected for reading in readings if reading.quantity == quantity}


def _weight_strip(subject: Subject, readings: Sequence[Reading]) -> tuple[StripLayer, ...]:
    """The matrices that instruments have read; empty where these are fewer than two."""
    told: dict[str, dict[str, float]] = {name: {} for name in READ}
    for reading in readings:
        for name, quantity in READ.items():
            if reading.quantity == quantity:
                told[name][reading.where] = reading.measured
    rows = {name: values for name, values in told.items() if values}
    names = [name for name in subject.weights if any(name in values for values in rows.values())]
    names = names[:: math.ceil(len(names) / MOST) or 1]
    bands = {row: _bands(readings, READ[row]) for row in rows}
    cells = {
        row: cells_of(row, [values.get(n, math.nan) for n in names], None, [bands[row].get(_layer(n)) for n in names])
        for row, values in rows.items()
    }
    if len(names) < 2:
        return ()
    return tuple(
        StripLayer(
            _layer(name) or name,
            " × ".join(map(str, subject.weights[name].shape)),
            tuple(row[place] for row in cells.values()),
        )
        for place, name in enumerate(names)
    )


def _layer(where: str) -> str:
    """The layer that a reading is about, whose place is a layer or its weight.

    >>> _layer("encoder.0.weight"), _layer("encoder.0")
    ('encoder.0', 'encoder.0')
    """
    return where.removesuffix(".weight").removesuffix("weight")


def _kind(subject: Subject, layer: Any) -> str:
    weight = subject.weights.get(f"{layer.name}.weight".lstrip("."))
    return str(layer.kind) if weight is None else f"{layer.kind} {' × '.join(str(side) for side in weight.shape)}"


def cells_of(
    row: str, values: Sequence[float], start: float | None, bands: Sequence[Band | None] = ()
) -> list[StripCell]:
    """Heights on a logarithmic scale; wrong is what has come far from where it starts: the first layer, a gradient's the last."""
    seen = sorted(value for value in values if value > 0 and math.isfinite(value)) or [1.0]
    middle = seen[len(seen) // 2]
    scale = Scale(min(seen[0], middle / ROOM), max(seen[-1], middle * ROOM), log=True)
    found = []
    for value, band in zip(values, bands or [None] * len(values), strict=True):
        if math.isnan(value):
            found.append(StripCell(row, "not measured", 0.0))
            continue
        height = scale.share(value) if scale.shows(value) else float(value > 0)
        far = start is not None and not (scale.shows(value) and start / FAR <= value <= start * FAR)
        ends = None if band is None else (_end(scale, band.low, 0.0), _end(scale, band.high, 1.0))
        words = "" if band is None else expectation(band)
        found.append(StripCell(row, plain(value, digits=3), round(0.06 + 0.94 * height, 3), far, words, ends))
    return found


def _end(scale: Scale, value: float, otherwise: float) -> float:
    """The height of an end of a band, within the strip."""
    if math.isinf(value):
        return otherwise
    share = scale.share(value) if value > 0 else 0.0
    return round(min(1.0, max(0.0, 0.06 + 0.94 * share)), 3)
