"""Which of many solutions training finds: diagonal networks, widest margins, rotation invariance."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
