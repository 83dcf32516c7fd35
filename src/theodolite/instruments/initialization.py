"""Are the weights spread so that signals survive the depth?

For each layer the variance of its weights times their fan-in, C_w, and the variance of its biases, C_b, next to the critical
values of the activation before it. In the band of C_w a signal changes by less than a factor e over the whole depth; in that of
C_b the variance shifts by less than its own scale. If the weights from before training are known (the subject's origin) these
are used, otherwise the current ones: if their spectra show that they were trained, leaving the band is the effect of training
and not a fault of the initialization.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Against, Band, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.layers import FedLayer, is_reset, layers_of, signals_of
from theodolite.instruments._common.trained import looks_trained

if TYPE_CHECKING:
    from theodolite.theory.propagation import Criticality


def read(subject: Subject) -> Iterator[Reading]:
    """C_w and C_b of every layer, and for the network as a whole the depth scale beside the depth."""
    layers = layers_of(subject)
    hidden = max(1, len(layers) - 1)
    when = "before training" if subject.origin is not None else "as they are now"
    points = [_point(layer) for layer in layers]
    reset, against = is_reset(signals_of(subject)), _band_of(subject)
    found: list[Reading] = []
    for layer, point in zip(layers, points, strict=True):
        reading = _weight_reading(layer, point, layer.chain or hidden, when)
        found.append(_beside_a_path(reading, layer) if reset and point is not None else reading)
    for layer, point in zip(layers, points, strict=True):
        if layer.bias_variance is not None:
            reading = _bias_reading(layer, point, layer.chain or hidden, when)
            found.append(_beside_a_path(reading, layer) if reset and point is not None else reading)
    if not reset:  # else the depth that counts is not that of the layers
        found += _depth_scales(layers, hidden)
    yield from (replace(reading, against=against) for reading in found)


def _point(layer: FedLayer) -> Criticality | None:
    if layer.activation is None:
        return None
    from theodolite.theory.propagation import criticality

    return criticality(layer.activation)


def _band_of(subject: Subject) -> Against:
    """What a network needs before training; of weights that were trained since, what they have left behind."""
    return "chance" if subject.origin is None and looks_trained(subject) else "health"


def _beside_a_path(reading: Reading, layer: FedLayer) -> Reading:
    """Without a band: criticality speaks of layers that follow each other, not of what sums and normalizations set anew."""
    many = f"{layer.chain} layers follow each other" if layer.chain > 1 else "No other layer follows it directly"
    return replace(
        reading,
        expected=None,
        meaning=f"{many}: then a sum or a normalization sets the signal's scale, so the critical value does not apply. The "
        "instrument signal measures what the whole path does to a signal.",
    )


def _weight_reading(layer: FedLayer, point: Criticality | None, hidden: int, when: str) -> Reading:
    band, meaning = None, f"Weights {when}. {layer.between}"
    if point is not None and layer.activation is not None:
        if point.weight_variance is None:
            meaning = f"{point.reason} No weight variance keeps signals alive at every depth; try another activation."
        else:
            from theodolite.theory.propagation import critical_band

            band = Band(*critical_band(point.weight_variance, hidden_layers=hidden))
            ratio = layer.weight_variance.value / point.weight_variance
            many = f"{hidden} such layers" if hidden > 1 else "this layer"
            meaning = (
                f"Weights {when} have {ratio:.3g} times the critical variance of {layer.activation.name}: over "
                f"{many} a signal changes by a factor of about {ratio**hidden:.3g}. " + _advice(ratio, band)
            )
    return Reading(
        quantity="C_w, weight variance × fan-in",
        where=layer.name,
        measured=layer.weight_variance.value,
        stderr=layer.weight_variance.stderr,
        expected=band,
        meaning=meaning,
    )


def _advice(ratio: float, band: Band) -> str:
    low, high = band.low / band.middle, band.high / band.middle
    if low <= ratio <= high:
        return "Nothing to change."
    trouble = "signals and gradients fade" if ratio < 1 else "signals and gradients grow"
    return f"In a plain chain of such layers {trouble} with depth; th.initialize_ draws critical weights."


def _bias_reading(layer: FedLayer, point: Criticality | None, hidden: int, when: str) -> Reading:
    assert layer.bias_variance is not None
    band, meaning = None, f"Biases {when}. {layer.between}"
    if point is not None and point.bias_variance is not None:
        scale = (point.fixed_point or 1.0) / hidden
        band = Band(max(0.0, point.bias_variance - scale), point.bias_variance + scale)
        meaning = (
            f"Biases {when}; the critical value is {point.bias_variance:.4g}, and within the band they shift the variance "
            f"by less than its own scale over {hidden} layers. " + _bias_words(layer.bias_variance.value, band)
        )
    return Reading(
        quantity="C_b, bias variance",
        where=layer.name,
        measured=layer.bias_variance.value,
        stderr=layer.bias_variance.stderr,
        expected=band,
        meaning=meaning,
    )


def _bias_words(variance: float, band: Band) -> str:
    if variance in band:
        return "Nothing to change."
    if variance > band.high:
        return "Larger biases make inputs the same; th.initialize_ draws critical ones."
    return "Smaller biases let the signal fade; th.initialize_ draws critical ones."


def _depth_scales(layers: Sequence[FedLayer], hidden: int) -> Iterator[Reading]:
    """One for each activation: the phase of the mean variances of the layers it feeds."""
    groups: dict[str, list[FedLayer]] = {}
    for layer in layers:
        if layer.activation is not None:
            groups.setdefault(layer.activation.name, []).append(layer)
    for name, members in groups.items():
        from theodolite.theory.propagation import phase

        weight = sum(layer.weight_variance.value for layer in members) / len(members)
        bias = sum(layer.bias_variance.value for layer in members if layer.bias_variance is not None) / len(members)
        found = phase(members[0].activation, weight_variance=weight, bias_variance=bias)  # type: ignore[arg-type]
        scale = min(found.correlation_depth, 1e6)
        yield Reading(
            quantity="depth scale of correlations, layers",
            where=f"{name}, mean of {len(members)} layers",
            measured=scale,
            expected=Band(low=float(hidden)),
            meaning=f"Mean variances C_w = {weight:.4g}, C_b = {bias:.4g} put {name} {_phase_words(found.name, scale, hidden)}: "
            f"the difference of two inputs changes by a factor e in {scale:.3g} layers, and there are {hidden}. "
            + (_ENOUGH if scale >= hidden else _SHORT),
        )


_ENOUGH = "Nothing to change."
_SHORT = "The first layers do not reach the output; try th.initialize_."


def _phase_words(name: str, scale: float, hidden: int) -> str:
    return "at criticality as far as this depth can tell" if scale > 10 * hidden else f"into the {name} phase"


instrument = Instrument(
    question="Are the weights spread so that signals survive the depth?",
    read=read,
    needs={"weights"},
    cost="free",
    laws=("criticality-conditions", "half-stable-criticality", "relu-critical", "depth-scale"),
    of_weights=("spread", "spectra"),
)
