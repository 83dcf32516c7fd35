"""Theodolite finds what is wrong with a PyTorch model and what to change.

The public surface is in the stub beside this file; names are loaded when first used, so that the command line answers at once.
"""

from theodolite.core.lazy_exports import surface

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = surface(__name__)
__all__ += ["__version__"]
