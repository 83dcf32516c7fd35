"""Random networks of the size that was asked for, measured beside theory."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.core.reading import Band, Estimate, Reading, Series
from theodolite.core.statistics import mean_estimate
from theodolite.measure.experiments import Ensemble, conditional_chains, conditional_gradients, correlations
from theodolite.measure.kernels import kernel_spectrum
from theodolite.theory.propagation import covariance_trajectory
from theodolite.verbs.designing.options import Option, network_of, rates_of

NETS, SEED = 256, 0
"""How many random networks of the asked width are drawn for each initialization, and the seed of the draws."""


VARIANCE, MOST = "variance at the end, relative to the start", 1e150
MOST_NUMBERS, BLOCK = 200_000_000, 2_500_000
"""How many activations are drawn at most for the tangent kernels, and about how many at once."""


def signal_readings(
    sigma: Any, options: Sequence[Option], depth: int, width: int, inputs: tuple[float, float]
) -> Iterator[Reading]:
    """Random networks of this size under each option, beside the infinitely wide prediction; the same draws for all."""
    starts = [(option, *_first_layer(option, *inputs)) for option in options]
    starts = [found for found in starts if found[1] > 0.0]  # inputs of 0 without biases: there is no signal to follow
    widths = (width,) * depth
    chains = conditional_chains(
        [
            Ensemble(sigma, widths, weight_variance=o.weight_variance, bias_variance=o.bias_variance)
            for o, _, _ in starts
        ],
        [start * torch.tensor([[1.0, angle], [angle, 1.0]], dtype=torch.float64) for _, start, angle in starts],
        nets=NETS,
        generator=torch.Generator().manual_seed(SEED),
    )
    for (option, start, angle), chain in zip(starts, chains, strict=True):
        yield from _of_option(sigma, option, chain, start, angle)


def _of_option(sigma: Any, option: Option, chain: Tensor, start: float, angle: float) -> Iterator[Reading]:
    depth = chain.shape[1] - 1
    ends = covariance_trajectory(network_of(sigma, option, depth), (start, start, angle * start))
    # where the signal explodes, those whose squares a double holds
    chain = chain[(chain.abs() < MOST).flatten(1).all(1)]
    if len(chain) < 2:
        words = "Signals grow beyond what double precision holds."
        yield Reading(quantity=VARIANCE, where=option.name, measured=math.inf, meaning=words)
        return
    norms = [mean_estimate(chain[:, layer, 0, 0] / start) for layer in range(depth + 1)]
    alive = chain[(chain[:, -1, 0, 0] > 0) & (chain[:, -1, 1, 1] > 0)]
    cosines = [mean_estimate(correlations(alive)[:, layer]) for layer in range(depth + 1)] if len(alive) > 1 else []
    yield _reading(VARIANCE, option, norms, [K11 / start for K11, _, _ in ends])
    if cosines:
        predicted = [K12 / math.sqrt(K11 * K22) if K11 * K22 > 0 else 0.0 for K11, K22, K12 in ends]
        yield _reading("cosine of two inputs at the end", option, cosines, predicted)


def _first_layer(option: Option, power: float, cosine: float) -> tuple[float, float]:
    """The variance and correlation of the first preactivations; at a half-stable point the first layer aims at it."""
    if option.name == "critical" and option.phase.fixed_point:
        start = option.phase.fixed_point
        return start, (option.bias_variance + (start - option.bias_variance) * cosine) / start
    start = option.bias_variance + option.weight_variance * power
    if start == 0.0:
        return 0.0, 1.0
    return start, (option.bias_variance + option.weight_variance * power * cosine) / start


def _reading(quantity: str, option: Option, measured: Sequence[Estimate], predicted: Sequence[float]) -> Reading:
    """Expected within a quarter (a cosine within 0.1): what finite width adds at the depths people use."""
    is_angle = quantity.startswith("cosine")
    if is_angle:
        bands = [Band(max(-1.0, value - 0.1), min(1.0, value + 0.1)) for value in predicted]
    else:
        bands = [Band.around(value, rel=0.25) if math.isfinite(value) else Band() for value in predicted]
    series = Series(
        x=tuple(float(layer) for layer in range(1, len(measured) + 1)),
        measured=tuple(e.value for e in measured),
        stderr=tuple(e.stderr for e in measured),
        low=tuple(b.low for b in bands),
        high=tuple(b.high for b in bands),
        x_label="layer",
        y_label="cosine" if is_angle else "variance over the first",
        log="" if is_angle else "y",
    )
    last = measured[-1]
    return Reading(
        quantity=quantity,
        where=option.name,
        measured=last.value,
        stderr=last.stderr,
        expected=bands[-1],
        meaning=_angle_words(last.value) if is_angle else _norm_words(last.value),
        series=series,
    )


def _norm_words(ratio: float) -> str:
    if 0.1 <= ratio <= 10:
        return "Signals keep their size through this depth."
    fate = "fade" if ratio < 1 else "grow"
    return f"Signals {fate} to {ratio:.3g} of their variance, and gradients likewise."


def _angle_words(cosine: float) -> str:
    if cosine > 0.99:
        return "Inputs have become the same: the output hardly depends on them."
    return "Inputs are still different at the end."


def step_reading(spec: Any, width: int, signal: tuple[float, float]) -> Iterator[Reading]:
    """The largest eigenvalue of random networks' tangent kernels beside theory's, where that is quickly done."""
    points, nets, depth = 8, 24, spec.hidden_layers
    numbers = points * width * (depth + 1)  # of one network
    if nets * numbers > MOST_NUMBERS:
        return
    power, cosine = signal
    generator = torch.Generator().manual_seed(SEED)
    common, own = (torch.randn(n, width, generator=generator, dtype=torch.float64) for n in (1, points))
    x = power**0.5 * (max(cosine, 0.0) ** 0.5 * common + (1 - max(cosine, 0.0)) ** 0.5 * own)
    C_w, C_b = spec.common_variances
    ensemble = Ensemble(spec.sigma, (width,) * depth, weight_variance=C_w, bias_variance=C_b)
    found: list[float] = []
    while len(found) < nets:
        block = min(nets - len(found), max(1, BLOCK // numbers))
        _, kernels = conditional_gradients(ensemble, x, nets=block, generator=generator)
        if not bool(torch.isfinite(kernels).all()):  # there is no step that is small enough
            return
        found += [kernel_spectrum(kernel).values.max().item() / points for kernel in kernels]
    rates = rates_of(spec, x, width)
    if not math.isfinite(rates.largest):
        return
    seen = mean_estimate(found)
    yield Reading(
        quantity="largest eigenvalue of the tangent kernel over the samples",
        where=f"{points} inputs",
        measured=seen.value,
        stderr=seen.stderr,
        expected=Band.around(rates.largest, rel=0.25),
        meaning=f"Plain gradient descent on {points} such inputs diverges above lr = 2 over this, {2 / seen.value:.3g}. "
        "It falls as 1 over the width; learning rates of 1 over fan-in by layer do not.",
    )
