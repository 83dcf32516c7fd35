"""Quadratic models of networks, trained in their place, and small problems with a known answer."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
