"""Manifolds of known dimension, random projections, and models trained in a random subspace."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
