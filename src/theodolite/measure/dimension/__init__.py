"""Intrinsic dimension of data and of objectives; every estimator returns an `Estimate`."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
