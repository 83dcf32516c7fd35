"""What only laws run: ensembles of random networks, flows, chains, and learners of small problems."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
