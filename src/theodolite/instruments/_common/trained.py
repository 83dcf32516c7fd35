"""Whether the weights have left what any initialization draws."""

from theodolite.core.reading import FAMILY
from theodolite.core.subject import Subject
from theodolite.instruments._common.spectra import LayerSpectrum, layer_spectra
from theodolite.measure.spectra.bulk import marchenko_pastur_bulk
from theodolite.theory.spectra.nulls import structure

NO_TAIL = 1e6
"""An exponent so large that no tail is heavy: the fit is dear, and not needed here."""


def looks_trained(subject: Subject) -> bool:
    """Whether some matrix has a spectrum that independent entries would not have, one network in fifty called so by chance.

    Judged by spikes and by the shape of the bulk; the level is shared by the matrices.
    """
    p_values = [p for layer in layer_spectra(subject) if (p := _p_value(layer)) is not None]
    return any(p < FAMILY / len(p_values) for p in p_values)


def _p_value(layer: LayerSpectrum) -> float | None:
    spectrum = layer.spectrum
    if spectrum is None or layer.reason or min(spectrum.rows, spectrum.columns) < 8:
        return None
    bulk = marchenko_pastur_bulk(spectrum.eigenvalues, spectrum.rows, spectrum.columns)
    if bulk.reason:
        return None
    return structure(
        spectrum.rows, spectrum.columns, alpha=NO_TAIL, bulk_distance=bulk.distance, excess=bulk.excess
    ).p_value
