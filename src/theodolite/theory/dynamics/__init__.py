"""Descent on quadratic models and just beyond: edges, catapults, phases, batch noise, stationarity."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
