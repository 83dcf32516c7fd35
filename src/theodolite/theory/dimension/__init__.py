"""The fast Walsh-Hadamard transform behind random subspaces."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
