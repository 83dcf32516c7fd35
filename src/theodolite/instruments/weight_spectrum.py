"""Do the eigenvalues of the weights say more than noise of the same shape would?

Each matrix's power-law exponent stands beside the interval that independent random entries of that shape give, its spikes
beside none, and the p-value of both and of the shape of the bulk against noise beside 5 %. The bands of heavy-tailed
self-regularisation (alpha below 2 over-trained, 2 to 6 well trained, above 6 under-trained; Martin and Mahoney, 2021) are
mentioned as the convention they are, never as the test: noise of small shapes often lands inside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from theodolite.core.families import widened
from theodolite.core.instrument import Instrument
from theodolite.core.reading import FAMILY, Band, Reading, Series
from theodolite.core.subject import Subject
from theodolite.instruments._common.spectra import LayerSpectrum, layer_spectra
from theodolite.io.workers import case_generator
from theodolite.measure.spectra import Bulk, PowerLaw, Spectrum, marchenko_pastur_bulk, power_law
from theodolite.theory.spectra import marchenko_pastur_density, null_alpha, structure

LEVEL = 0.05
REFITS, MOST = 100, 2048
"""Bootstrap refits behind a goodness of fit, and the number of eigenvalues up to which it is taken."""


def read(subject: Subject) -> Iterator[Reading]:
    """For every matrix its tail exponent, its spikes, and how likely noise would be to show as much."""
    layers = layer_spectra(subject)
    for layer in layers:
        if layer.spectrum is None or layer.reason:
            yield _unread(layer)
    told = [
        (layer.name, layer.how, layer.spectrum) for layer in layers if layer.spectrum is not None and not layer.reason
    ]
    fits = {name: _fitted(name, spectrum) for name, _, spectrum in told}
    for name, how, spectrum in told:
        yield _exponent(name, how, spectrum, fits[name], len(told))
    for name, _, spectrum in told:
        yield _spikes(name, spectrum, fits[name], len(told))
    for name, _, spectrum in told:
        yield _surprise(name, spectrum, fits[name])


def _fitted(name: str, spectrum: Spectrum) -> tuple[PowerLaw, Bulk]:
    refits = REFITS if len(spectrum.eigenvalues) <= MOST else 0
    fit = power_law(spectrum.eigenvalues, refits=refits, generator=case_generator(0, {"matrix": name}))
    return fit, marchenko_pastur_bulk(spectrum.eigenvalues, spectrum.rows, spectrum.columns)


def _unread(layer: LayerSpectrum) -> Reading:
    shape = f"{layer.spectrum.rows} x {layer.spectrum.columns}, " if layer.spectrum is not None else ""
    return Reading(
        quantity="matrix without a spectrum to fit",
        where=layer.name,
        measured=0.0,
        meaning=f"{shape}{layer.reason}. It is named here so that nothing is left out in silence.",
    )


def _exponent(name: str, how: str, spectrum: Spectrum, found: tuple[PowerLaw, Bulk], matrices: int) -> Reading:
    fit, bulk = found
    if not math.isfinite(fit.alpha):
        return Reading(
            quantity="alpha, exponent of the tail", where=name, measured=0.0, meaning=f"No fit: {fit.reason}."
        )
    null = (
        null_alpha(spectrum.rows, spectrum.columns, significance=LEVEL)
        if min(spectrum.rows, spectrum.columns) >= 8
        else None
    )
    parts = [f"Tail of {fit.tail} of {len(spectrum.eigenvalues)} eigenvalues, Kolmogorov distance {fit.distance:.3f}"]
    if fit.p_value is not None:
        parts.append(f", p {fit.p_value:.2g} ({'no' if fit.p_value < 0.1 else 'a'} power law by Clauset's rule of 0.1)")
    words = (
        "".join(parts)
        + ". "
        + _against_null(fit.alpha, null and widened(null, matrices))
        + (f" {how[0].upper()}{how[1:]}." if how else "")
    )
    return Reading(
        quantity="alpha, exponent of the tail",
        where=name,
        measured=fit.alpha,
        stderr=fit.stderr,
        expected=null,
        against="chance",
        meaning=words,
        series=_density(spectrum, fit, bulk),
    )


def _against_null(alpha: float, null: Band | None) -> str:
    if null is None:
        return "Too small a matrix for its exponent to be told from noise."
    usual = "below 2" if alpha < 2 else "in 2 to 6" if alpha <= 6 else "above 6"
    if alpha >= null.low:
        return f"Noise of this shape gives as much ({null}): the exponent, {usual}, says nothing of training."
    return (
        f"Heavier than noise of this shape ({null}): correlations have grown. By the convention of Martin and Mahoney "
        f"(2021) {usual} is {'over-trained' if alpha < 2 else 'well trained' if alpha <= 6 else 'under-trained'}."
    )


def _spikes(name: str, spectrum: Spectrum, found: tuple[PowerLaw, Bulk], matrices: int) -> Reading:
    bulk = found[1]
    if bulk.reason:
        return Reading(
            quantity="spikes above the edge of noise", where=name, measured=0.0, meaning=f"No bulk: {bulk.reason}."
        )
    alone = structure(spectrum.rows, spectrum.columns, alpha=math.nan, bulk_distance=math.nan, excess=bulk.excess)
    chance = bulk.spikes > 0 and alone.p_value * matrices > FAMILY  # one matrix of noise in a hundred has a spike
    words = f"{bulk.spikes} eigenvalues above the edge hold {bulk.share:.1%} of the squared norm: " + (
        f"so little above it that one of {matrices} matrices of noise may show it."
        if chance
        else "directions that training has written."
        if bulk.spikes
        else "no direction stands out of the noise."
    )
    return Reading(
        quantity="spikes above the edge of noise",
        where=name,
        measured=float(bulk.spikes),
        expected=Band(high=float(bulk.spikes) if chance else 0.0),
        against="chance",
        meaning=words,
    )


def _surprise(name: str, spectrum: Spectrum, found: tuple[PowerLaw, Bulk]) -> Reading:
    fit, bulk = found
    seen = structure(spectrum.rows, spectrum.columns, alpha=fit.alpha, bulk_distance=bulk.distance, excess=bulk.excess)
    words = f"Most telling: {seen.cause}. " + (
        "Noise would hardly show as much: this matrix has structure."
        if seen.at(LEVEL)
        else "It could be noise: untrained, or trained too little to show in its spectrum."
    )
    return Reading(
        quantity="p-value against noise",
        where=name,
        measured=seen.p_value,
        expected=Band(low=LEVEL),
        against="chance",
        meaning=words,
    )


def _density(spectrum: Spectrum, fit: PowerLaw, bulk: Bulk) -> Series:
    """The density of eigenvalues on logarithmic bins, noise of the fitted variance, and the fitted tail.

    From a thousandth of the largest eigenvalue on: below it square matrices only show their hard edge at zero.
    """
    values = spectrum.eigenvalues[spectrum.eigenvalues > max(spectrum.rounding, 1e-3 * spectrum.largest)]
    edges = np.geomspace(values.min() * 0.999, values.max() * 1.001, min(40, max(8, len(values) // 4)) + 1)
    counts = np.histogram(values, edges)[0]
    seen = counts > 0
    x, width, counts = np.sqrt(edges[1:] * edges[:-1])[seen], np.diff(edges)[seen], counts[seen]
    total = len(spectrum.eigenvalues)
    p, n = sorted((spectrum.rows, spectrum.columns))
    scale = bulk.variance * n
    noise = np.asarray(marchenko_pastur_density(x / scale, p / n)) / scale if scale > 0 else np.zeros_like(x)
    tail = fit.tail / total * (fit.alpha - 1) / fit.xmin * (x / fit.xmin) ** -fit.alpha
    return Series(
        x=tuple(x.tolist()),
        measured=tuple((counts / (total * width)).tolist()),
        stderr=tuple((np.sqrt(counts) / (total * width)).tolist()),
        low=tuple(np.where(noise > 0, noise, np.inf).tolist()),
        high=tuple(np.where(noise > 0, noise, -np.inf).tolist()),
        x_label="eigenvalue of WᵀW",
        y_label="density",
        log="xy",
        line=tuple(np.where(x >= 0.99 * fit.xmin, tail, np.nan).tolist()),
        line_label=f"power law, α = {fit.alpha:.2f}",
    )


instrument = Instrument(
    question="Do the weights' spectra say more than noise would?",
    read=read,
    needs={"weights"},
    cost="free",
    laws=("marchenko-pastur", "null-of-alpha", "bbp-spikes"),
    of_weights=("spectra",),
)
