"""The simplex that collapsed class means form."""

from theodolite.core.lazy import surface

__getattr__, __dir__, __all__ = surface(__name__)
