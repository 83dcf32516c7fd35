"""Bayesian deep linear networks: evidence and posterior, exact at any widths."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
