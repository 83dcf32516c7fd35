"""How many directions do the weights use, and how many would noise of the same shape?"""

import math
from collections.abc import Iterator

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.spectra import layer_spectra
from theodolite.measure.spectra import Spectrum
from theodolite.theory.spectra.noise import marchenko_pastur_cdf
from theodolite.theory.spectra.ranks import noise_effective_rank, noise_stable_rank, noise_stable_rank_band


def read(subject: Subject) -> Iterator[Reading]:
    """Stable rank, effective rank and numerical rank of every weight matrix."""
    layers = [layer for layer in layer_spectra(subject) if layer.spectrum is not None and layer.spectrum.largest > 0]
    for layer in layers:
        assert layer.spectrum is not None
        spectrum, noise = layer.spectrum, noise_stable_rank(layer.spectrum.rows, layer.spectrum.columns)
        share = spectrum.stable_rank / noise
        yield Reading(
            quantity="stable rank",
            where=layer.name,
            measured=spectrum.stable_rank,
            expected=noise_stable_rank_band(spectrum.rows, spectrum.columns),
            against="chance",
            meaning=f"{share:.2f} of what noise of this shape has. "
            + (
                "A few directions carry the norm: low-rank structure."
                if share < 0.8
                else "The norm is spread as in noise."
            ),
        )
    for layer in layers:
        assert layer.spectrum is not None
        spectrum, noise = layer.spectrum, noise_effective_rank(layer.spectrum.rows, layer.spectrum.columns)
        yield Reading(
            quantity="effective rank",
            where=layer.name,
            measured=spectrum.effective_rank,
            expected=Band.around(noise, rel=0.05),
            against="chance",
            meaning=f"By the entropy of the singular values; noise of this shape has {noise:.4g}.",
        )
    for layer in layers:
        assert layer.spectrum is not None
        smaller = min(layer.spectrum.rows, layer.spectrum.columns)
        yield Reading(
            quantity="numerical rank",
            where=layer.name,
            measured=float(layer.spectrum.numerical_rank),
            expected=Band(_told_apart(layer.spectrum), smaller),
            against="chance",
            meaning="Eigenvalues above rounding in the stored precision. Fewer than noise of this shape keeps in that "
            "precision: the matrix can be factorized without loss.",
        )


def _told_apart(spectrum: Spectrum) -> float:
    """How many eigenvalues noise of this shape and size keeps above the rounding of its storage, at least.

    The smallest ones of a square matrix lie below the rounding of bfloat16, and of float16, by themselves.
    """
    p, n = sorted((spectrum.rows, spectrum.columns))
    variance = spectrum.trace / (p * n)
    below = p * float(marchenko_pastur_cdf(spectrum.rounding / n, p / n, variance=variance))
    return float(p) if below < 1e-3 else max(0.0, p - math.ceil(below + 3 * math.sqrt(below) + 1))


instrument = Instrument(
    question="How many directions do the weights use?",
    read=read,
    needs={"weights"},
    cost="free",
    laws=("marchenko-pastur", "bbp-spikes"),
    of_weights=("spectra",),
)
