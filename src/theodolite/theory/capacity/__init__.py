"""How many points a network can fit, corrective networks, entropy numbers."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
