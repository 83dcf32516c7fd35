"""Do the eigenvalues of the weights show more than noise of the same shape?

Each matrix's power-law exponent next to the range that independent random entries of that shape give, its spikes next to zero,
and the p-value of both and of the shape of the bulk against 5 %, corrected over the matrices. If entries are heavy-tailed,
structure must show in their ranks too: a few large entries are not structure. The ranges of heavy-tailed self-regularization
(alpha below 2 over-trained, 2 to 6 well trained, above 6 under-trained; Martin and Mahoney, 2021) are mentioned as the
convention they are, never used as a test: noise of small shapes often falls inside them.
"""

import math
from collections.abc import Iterator

import numpy as np

from theodolite.core.instrument import Instrument
from theodolite.core.multiple_comparisons import widened
from theodolite.core.reading import FAMILY, Band, Reading, Series
from theodolite.core.statistics import holm
from theodolite.core.subject import Subject
from theodolite.instruments._common.spectra import LayerSpectrum, layer_spectra
from theodolite.instruments._common.tails import LEVEL, Tail, layer_tails
from theodolite.measure.spectra import Bulk, PowerLaw, Spectrum
from theodolite.theory.spectra.noise import marchenko_pastur_density
from theodolite.theory.spectra.nulls import null_alpha

CLAUSET = 0.1
"""Below this p-value a tail is no power law."""


def read(subject: Subject) -> Iterator[Reading]:
    """For every matrix its tail exponent, its spikes, and how likely noise would be to show as much."""
    tails = layer_tails(subject)
    layers = layer_spectra(subject)
    for layer in layers:
        if layer.spectrum is None or layer.reason:
            yield _unread(layer)
    told = [
        (layer.name, layer.how, layer.spectrum)
        for layer in layers
        if layer.spectrum is not None and not layer.reason and layer.name in tails
    ]
    for name, how, spectrum in told:
        yield _exponent(name, how, spectrum, tails[name], len(told))
    names = [name for name, _, _ in told]
    p_values = dict(zip(names, holm([tails[name].p_value for name in names]), strict=True))
    for name in names:
        yield _spikes(name, tails[name], p_values[name])
    for name in names:
        yield _surprise(name, tails[name], p_values[name], len(told))
    for name, _, spectrum in told:
        if tails[name].heavy:
            yield _entries(name, spectrum, tails[name])


def _unread(layer: LayerSpectrum) -> Reading:
    shape = f"{layer.spectrum.rows} x {layer.spectrum.columns}, " if layer.spectrum is not None else ""
    return Reading(
        quantity="matrix without a spectrum to fit",
        where=layer.name,
        measured=0.0,
        meaning=f"{shape}{layer.reason}. Listed for completeness.",
    )


def _exponent(name: str, how: str, spectrum: Spectrum, found: Tail, matrices: int) -> Reading:
    fit = found.fit
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
        parts.append(
            f", p {fit.p_value:.2g} ({'no' if fit.p_value < CLAUSET else 'a'} power law by Clauset's rule of 0.1)"
        )
    by_entries = null is not None and fit.alpha < null.low and found.ranked_alpha >= null.low
    words = (
        _BY_ENTRIES.format(found.ranked_alpha)
        if by_entries
        else _against_null(
            fit.alpha, null and widened(null, matrices), lawful=fit.p_value is None or fit.p_value >= CLAUSET
        )
    )
    words = "".join(parts) + ". " + words + (f" {how[0].upper()}{how[1:]}." if how else "")
    return Reading(
        quantity="alpha, exponent of the tail",
        where=name,
        measured=fit.alpha,
        stderr=fit.stderr,
        expected=None if by_entries else null,
        against="chance",
        meaning=words,
        series=_density(spectrum, fit, found.bulk),
    )


_BY_ENTRIES = (
    "A few large entries cause this: by the ranks of the entries the exponent is {:.3g}, the same as for noise of this "
    "shape. It says nothing about training."
)


def _against_null(alpha: float, null: Band | None, *, lawful: bool = True) -> str:
    if null is None:
        return "The matrix is too small to distinguish its exponent from noise."
    usual = "below 2" if alpha < 2 else "in 2 to 6" if alpha <= 6 else "above 6"
    if alpha >= null.low:
        return f"Noise of this shape gives the same ({null}): the exponent, {usual}, says nothing about training."
    if not lawful:
        return (
            f"Heavier than noise of this shape ({null}): correlations have grown. The tail is not a power law, so its "
            "exponent says no more than that."
        )
    return (
        f"Heavier than noise of this shape ({null}): correlations have grown. By the convention of Martin and Mahoney "
        f"(2021) {usual} is {'over-trained' if alpha < 2 else 'well trained' if alpha <= 6 else 'under-trained'}."
    )


def _spikes(name: str, found: Tail, p_value: float) -> Reading:
    bulk, ranked = found.bulk, found.ranked_spikes
    if bulk.reason:
        return Reading(
            quantity="spikes above the edge of noise", where=name, measured=0.0, meaning=f"No bulk: {bulk.reason}."
        )
    spikes = bulk.spikes if ranked is None else min(ranked, bulk.spikes)
    told = spikes > 0 and p_value <= FAMILY
    fate = "directions that training has created" if told else "as noise occasionally shows in this many matrices"
    words = f"{bulk.spikes} eigenvalues above the edge hold {bulk.share:.1%} of the squared norm: " + (
        f"{fate}." if spikes else "no direction exceeds the noise."
    )
    if ranked is not None and ranked < bulk.spikes:
        words = (
            f"{bulk.spikes} eigenvalues above the edge hold {bulk.share:.1%} of the squared norm; by the ranks of the "
            f"entries {ranked} stand out. The others come from single large entries."
        )
    return Reading(
        quantity="spikes above the edge of noise",
        where=name,
        measured=float(spikes),
        expected=Band(high=0.0 if told else float(spikes)),
        against="chance",
        meaning=words,
    )


def _surprise(name: str, found: Tail, p_value: float, matrices: int) -> Reading:
    words = f"Clearest sign: {found.cause}. " + (
        "Noise would hardly show as much: this matrix has structure."
        if p_value <= FAMILY
        else "It could be noise: the matrix is untrained, or trained too little for its spectrum to show it."
    )
    if matrices > 1:
        words += f" Alone {found.p_value:.2g}; corrected for {matrices} matrices (Holm)."
    return Reading(
        quantity="p-value against noise",
        where=name,
        measured=p_value,
        expected=Band(low=FAMILY),
        against="chance",
        meaning=words,
    )


def _entries(name: str, spectrum: Spectrum, found: Tail) -> Reading:
    return Reading(
        quantity="kurtosis of the entries",
        where=name,
        measured=found.kurtosis,
        stderr=math.sqrt(24 / (spectrum.rows * spectrum.columns)),
        expected=Band(high=3.0),
        against="chance",
        meaning="Gaussian entries have 3, uniform ones 1.8, more means that a few are far larger than the rest (or that most "
        "are zero). Such entries make large eigenvalues by themselves and are hard to quantize; the test of noise goes by ranks.",
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
    question="Do the weights' spectra differ from noise?",
    read=read,
    needs={"weights"},
    cost="free",
    laws=("marchenko-pastur", "null-of-alpha", "bbp-spikes"),
    of_weights=("spectra", "tails"),
)
