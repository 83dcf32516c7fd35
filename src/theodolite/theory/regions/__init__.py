"""How many linear regions a ReLU network has: at most, in general position, and on average."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
