"""BUILD: networks that a specification or a theorem writes down, and data with a known answer."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
