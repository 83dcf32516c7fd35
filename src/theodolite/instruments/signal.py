"""How do norms and angles of the data change through the layers, compared with a random network?

Each layer's mean square and mean cosine between inputs, next to what theory gives for random weights with the same variances,
computed from the measurement at the layer before and the activation between. The band is three standard deviations of a random
layer of this width. A trained layer outside the band has learned to treat the data unlike noise.
"""

import math
from collections.abc import Iterator, Sequence

import torch

from theodolite.core.instrument import Instrument
from theodolite.core.multiple_comparisons import widened
from theodolite.core.reading import Band, Reading
from theodolite.core.statistics import mean_estimate
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded
from theodolite.instruments._common.layers import is_reset, signal_activation, signals_of
from theodolite.measure.propagation import Signal, path_gains
from theodolite.theory import Activation
from theodolite.theory.propagation import correlation_spread, next_covariance, next_variance, signal_spread

DIRECTIONS, SAMPLES = 4, 16
"""Random directions, and samples, by which the gain of a whole path is measured."""


def read(subject: Subject) -> Iterator[Reading]:
    """The mean square and the mean cosine behind every layer on the first batch."""
    seen = signals_of(subject)
    sigmas = [signal_activation(signal) if place else None for place, signal in enumerate(seen)]
    told = max(1, sum(sigma is not None for sigma in sigmas))
    norms, cosines = [], []
    for place, (signal, sigma) in enumerate(zip(seen, sigmas, strict=True)):
        before = seen[place - 1] if sigma is not None else None
        norms.append(_norm(signal, before, sigma, told))
        if signal.cosine == signal.cosine:  # not a number where fewer than two inputs give any signal
            cosines.append(_cosine(signal, before, sigma, told))
    yield from norms
    yield from cosines
    if is_reset(seen):
        yield from _path(subject, seen)


def _path(subject: Subject, seen: Sequence[Signal]) -> Iterator[Reading]:
    """What residual and normalized paths do as a whole: the relative change of the answer to one behind the first layer."""
    batch = next(subject.batches())
    rows = min(len(batch), SAMPLES, afforded(subject, "forward", passes=2.0 * DIRECTIONS, fewest=2))
    few = batch.spread(rows)
    directions = torch.randn(DIRECTIONS, seen[0].units, generator=torch.Generator().manual_seed(0))
    try:
        gains = path_gains(lambda: subject.output(few), subject.model.get_submodule(seen[0].layer), directions).cpu()
    except (RuntimeError, ValueError):  # features whose axes are not those of units
        return
    found = mean_estimate(gains.mean(1))
    error = math.hypot(found.stderr, mean_estimate(gains.mean(0)).stderr)
    yield Reading(
        quantity="relative gain of the whole network",
        where=f"from {seen[0].layer} to the output",
        measured=found.value,
        stderr=error,
        meaning=f"A change of 1 % after the first layer changes the output by {found.value:.3g} %. "
        + (
            "The first layer hardly affects the output."
            if found.value < 0.01
            else "Small changes grow on the way: nearby inputs end up far apart."
            if found.value > 10
            else "Signals pass through the network."
        ),
    )


def _norm(signal: Signal, before: Signal | None, sigma: Activation | None, told: int) -> Reading:
    band, meaning = None, _unknown(signal)
    if before is not None and sigma is not None:
        weight, bias = signal.weight_variance, signal.bias_variance or 0.0
        # Inputs differ in norm: two points at one spread either side of the mean carry the curvature of the map.
        points = [max(0.0, before.mean_square + sign * before.spread) for sign in (-1, 1)]
        mean = sum(next_variance(sigma, K, weight_variance=weight, bias_variance=bias) for K in points) / 2
        spread = signal_spread(
            sigma,
            before.mean_square,
            weight_variance=weight,
            bias_variance=bias,
            width=before.units,
            units=signal.units,
        )
        band = Band(max(0.0, mean - 3 * spread), mean + 3 * spread)
        meaning = _meaning(signal.mean_square, widened(band, told), "larger", "smaller")
    return Reading(
        quantity="mean square of the signal",
        where=signal.layer,
        measured=signal.mean_square,
        stderr=signal.stderr,
        expected=band,
        against="chance",
        meaning=meaning,
    )


def _cosine(signal: Signal, before: Signal | None, sigma: Activation | None, told: int) -> Reading:
    band, meaning = None, _unknown(signal)
    if before is not None and sigma is not None and before.cosine == before.cosine and before.mean_square > 0:
        K = before.mean_square
        points = [min(1.0, max(-1.0, before.cosine + sign * before.cosine_spread)) for sign in (-1, 1)]
        mean = sum(_correlation(signal, sigma, K, c) for c in points) / 2
        spread = correlation_spread(mean, width=before.units, units=signal.units)
        band = Band(max(-1.0, mean - 3 * spread), min(1.0, mean + 3 * spread))
        meaning = _meaning(signal.cosine, widened(band, told), "more similar", "less similar")
    return Reading(
        quantity="mean cosine between inputs",
        where=signal.layer,
        measured=signal.cosine,
        stderr=signal.cosine_stderr,
        expected=band,
        against="chance",
        meaning=meaning,
    )


def _correlation(signal: Signal, sigma: Activation, K: float, cosine: float) -> float:
    K11, K22, K12 = next_covariance(
        sigma, (K, K, cosine * K), weight_variance=signal.weight_variance, bias_variance=signal.bias_variance or 0.0
    )
    return K12 / (K11 * K22) ** 0.5 if K11 * K22 > 0 else 0.0


def _unknown(signal: Signal) -> str:
    fed = signal.between or signal.activation or "the input"
    return f"Its input comes from {fed}: theory for a plain random layer does not apply, so there is nothing to compare with."


def _meaning(measured: float, band: Band, more: str, less: str) -> str:
    if measured in band:
        return "As with random weights of this variance: the layer treats the data like a random one."
    said = more if measured > band.high else less
    return (
        f"Signals come out {said} than with random weights of this variance: the layer is tuned to these data. In a "
        "trained network this is learning; before training it means that the weights are not independent."
    )


instrument = Instrument(
    question="How do norms and angles of the data change through the layers?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    sees={"features": 0},
    laws=("conditional-gaussian-layer", "nngp-recursion", "info-prop-dot-product"),
)
