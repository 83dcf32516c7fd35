"""Both kernels of all pairs at once: by one fused program on a GPU where there is one, else tile by tile."""

import torch
from torch import Tensor

from theodolite.theory.kernels._gpu import has_triton
from theodolite.theory.kernels._map_sequences import Program
from theodolite.theory.kernels._tiled_pairs import Kernels, Precision, plan_of, points_of


def whole_kernels(program: Program, x: Tensor, other: Tensor | None, precision: Precision = "highest") -> Kernels:
    """Both kernels of all pairs of rows of ``x``, or of ``x`` with ``other``, by the quickest way there is."""
    points = points_of(x)
    if other is None and points.is_cuda and points.dtype == torch.float32 and has_triton():
        from theodolite.theory.kernels._gpu.tiles import fused_kernels  # needs Triton

        found = fused_kernels(program, points, precision)
        if found is not None:
            return found
    return plan_of(program, points, other).kernels()
