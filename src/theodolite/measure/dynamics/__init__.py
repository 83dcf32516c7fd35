"""What a training run shows: gradient noise, travel, the balance of SGD."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
