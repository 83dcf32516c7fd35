"""How many directions do the weights use, and how many would noise of the same shape?"""

from __future__ import annotations

from collections.abc import Iterator

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.spectra import layer_spectra
from theodolite.theory.spectra import noise_effective_rank, noise_stable_rank


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
            expected=_edge_band(noise, spectrum.rows),
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
            expected=Band(smaller, smaller),
            against="chance",
            meaning="Eigenvalues above rounding in the stored precision. Fewer than the smaller side: the matrix can be "
            "factorised without loss.",
        )


def _edge_band(noise: float, rows: int) -> Band:
    """The largest eigenvalue of noise fluctuates by n^(-2/3) of itself; three times that either side."""
    return Band.around(noise, rel=min(0.5, 3 * rows ** (-2 / 3) + 0.02))


instrument = Instrument(
    question="How many directions do the weights use?",
    read=read,
    needs={"weights"},
    cost="free",
    laws=("marchenko-pastur", "bbp-spikes"),
    of_weights=("spectra",),
)
