"""Data of known dimension: points drawn uniformly from manifolds, flat and curved, with and without an edge."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from theodolite.core.checks import InputError

_Kind = Literal["ball", "cube", "gauss", "sphere", "torus", "swiss roll", "arc and cube"]


def manifold(kind: _Kind, count: int, dimension: int, *, generator: torch.Generator) -> Tensor:
    """Points of a manifold of this dimension in the fewest columns that hold it, float64.

    ``ball``, ``cube``, ``gauss``: flat, with an edge (the last a soft one); ``sphere``: in d + 1 columns; ``torus``: a product
    of d circles in 2d columns, flat and without edge; ``swiss roll`` (2): a rolled sheet in 3; ``arc and cube``: an arc times
    a cube, flat, in d + 1.

    >>> x = manifold("sphere", 5, 3, generator=torch.Generator().manual_seed(0))
    >>> x.shape, torch.allclose(x.norm(dim=1), torch.ones(5, dtype=torch.float64))
    (torch.Size([5, 4]), True)
    """
    if kind not in get_args(_Kind) or dimension < 1 or (kind == "swiss roll" and dimension != 2):
        raise InputError(
            f"expected a kind among {get_args(_Kind)} of positive dimension (the roll: 2), got {kind!r}, {dimension}"
        )

    def uniform(columns: int) -> Tensor:
        return torch.rand(count, columns, generator=generator, dtype=torch.float64)

    def normal(columns: int) -> Tensor:
        return torch.randn(count, columns, generator=generator, dtype=torch.float64)

    if kind == "cube":
        return uniform(dimension)
    if kind == "gauss":
        return normal(dimension)
    if kind in ("sphere", "ball"):
        unit = torch.nn.functional.normalize(normal(dimension + (kind == "sphere")), dim=1)
        return unit if kind == "sphere" else unit * uniform(1) ** (1 / dimension)
    if kind == "torus":
        angles = 2 * math.pi * uniform(dimension)
        return torch.cat([angles.cos(), angles.sin()], dim=1)
    flat = uniform(dimension)
    if kind == "swiss roll":
        return torch.stack(rolled(flat), dim=1)
    arc = 2 * flat[:, :1]
    return torch.cat([arc.cos(), arc.sin(), flat[:, 1:]], dim=1)


def rolled(flat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A sheet of unit coordinates rolled up: the angle runs over one and a half turns, the height over 21."""
    angle = 1.5 * math.pi * (1 + 2 * flat[:, 0])
    return angle * angle.cos(), 21 * flat[:, 1], angle * angle.sin()


def unrolled_length(points: Tensor) -> Tensor:
    r"""How far along the roll each point lies: $\frac12(t\sqrt{1+t^2}+\mathrm{asinh}\,t)$, t its angle and its radius."""
    t = (points[:, 0].square() + points[:, 2].square()).sqrt()
    return (t * (1 + t**2).sqrt() + torch.asinh(t)) / 2


def rotated(points: Tensor, columns: int, *, generator: torch.Generator) -> Tensor:
    """The same points turned into so many columns: distances stay."""
    basis = torch.linalg.qr(torch.randn(columns, points.shape[1], generator=generator, dtype=torch.float64))[0]
    return points @ basis.T
