"""Theodolite finds what is wrong with a PyTorch model and what to change.

The public surface is in the stub beside this file; names are loaded when first used, so that the command line answers at once.
"""

from theodolite.core.lazy_exports import surface

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = surface(__name__)
__all__ += ["__version__"]


def load_ipython_extension(shell: object) -> None:
    """``%load_ext theodolite`` in a notebook; then ``%%theodolite`` watches a cell."""
    from theodolite.integrations.notebook import register

    register(shell)
