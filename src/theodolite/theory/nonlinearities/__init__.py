"""Activations that torch has not, a file each; ``Activation`` finds them by the file's name."""

from theodolite.core.lazy import surface

__getattr__, __dir__, __all__ = surface(__name__)
