"""Linear regions of piecewise linear networks, counted exactly: on lines, in polygons of a slice, around one input."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
