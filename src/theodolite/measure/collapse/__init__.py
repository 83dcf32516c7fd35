"""Neural collapse: how near the features of the classes are to the corners of a simplex."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
