"""Signals at initialization: maps of variance and angle, criticality, depth scales, random ReLU paths."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
