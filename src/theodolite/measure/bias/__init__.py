"""What a learner answers when everything is turned, and the linear map at the end of a model."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
