"""Hessian, Gauss-Newton and Fisher matrices as products with vectors: eigenvalues, densities, traces, class structure."""

from theodolite.core.lazy_exports import surface

__getattr__, __dir__, __all__ = surface(__name__)
