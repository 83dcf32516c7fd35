"""Spectra of noise and of power laws, and what products of matrices make of them."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
