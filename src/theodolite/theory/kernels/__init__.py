"""Kernels of infinitely wide networks, what they predict, and the step sizes that they allow."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
