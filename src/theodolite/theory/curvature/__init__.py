"""Ranks of the Gauss-Newton matrix and of its class structure."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
