"""Tangent kernels of any module, and its expansion about its weights."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
