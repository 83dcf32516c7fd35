"""PREDICT: numbers go in, numbers come out; nothing here ever sees a model or a measurement.

A folder a topic; what several topics share lies beside the folders.
"""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
