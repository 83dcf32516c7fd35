"""MEASURE: models and data go in, numbers with errors come out; nothing here knows what theory expects.

A folder a topic; ``experiments`` holds what only laws run: ensembles of random networks, flows, learners.
"""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
