"""Spectra of weights and features: eigenvalues, tails, bulk, decay."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
