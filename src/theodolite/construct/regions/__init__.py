"""A network whose number of linear pieces doubles with every fold."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
