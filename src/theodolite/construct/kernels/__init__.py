"""The kernel of a user's own network, and infinitely wide networks as scikit-learn estimators."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
