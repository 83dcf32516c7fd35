"""How many balls cover a set, and how well random maps keep its distances."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
