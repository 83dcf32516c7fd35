"""Networks as a specification writes them, their critical initialization, their spread over seeds."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
