"""Signals and variances of any module, layer by layer, and gradients over redrawn weights."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
