"""Points of the unit sphere whose smallest distance is known."""

import math

import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.theory.capacity import separation


def separated_pairs(samples: int, dimension: int, *, theta: float, generator: torch.Generator) -> Tensor:
    r"""Random points of the sphere and a partner of each at distance $\theta$; no two points are closer.

    >>> from theodolite.theory.capacity.corrective_networks import separation
    >>> x = separated_pairs(10, 20, theta=0.1, generator=torch.Generator().manual_seed(0))
    >>> x.shape, round(separation(x), 12)
    (torch.Size([10, 20]), 0.1)
    """
    if samples % 2 or samples < 2 or dimension < 2 or not 0 < theta < math.sqrt(2):
        raise InputError(f"expected an even number of points and 0 < theta < sqrt 2, got {samples} and {theta}")
    for _ in range(20):
        drawn = torch.randn(
            2, samples // 2, dimension, generator=generator, dtype=torch.float64, device=generator.device
        )
        first = drawn[0] / drawn[0].norm(dim=1, keepdim=True)
        tangent = drawn[1] - (drawn[1] * first).sum(1, keepdim=True) * first
        tangent = tangent / tangent.norm(dim=1, keepdim=True)
        angle = 2 * math.asin(theta / 2)
        points = torch.stack([first, math.cos(angle) * first + math.sin(angle) * tangent], 1).reshape(
            samples, dimension
        )
        if separation(points) >= theta * (1 - 1e-9):
            return points
    raise InputError(
        f"expected room for {samples} points {theta} apart in dimension {dimension}, got none; ask for less"
    )
