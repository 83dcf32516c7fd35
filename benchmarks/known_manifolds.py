"""Twenty-four manifolds of known dimension on which estimators are compared: spheres, rolls, helices, cubes and bent ones."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import torch
from torch import Tensor

from theodolite.construct.dimension.manifolds import manifold

_Draw = Callable[[int, int, torch.Generator], Tensor]


@dataclass(frozen=True)
class KnownManifold:
    """A manifold of known ``dimension`` from which points are drawn."""

    name: str
    dimension: int
    source: str
    _draw: _Draw

    def points(self, count: int, *, generator: torch.Generator) -> Tensor:
        """So many points, float64, drawn independently."""
        return self._draw(count, self.dimension, generator)


def _uniform(count: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.rand(count, columns, generator=generator, dtype=torch.float64)


def _affine(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """A slanted box of three dimensions in five columns."""
    slant = torch.tensor(
        [[1.2, 0.5, -0.5, 0.4, 1.1], [-0.5, 0.9, -0.2, -0.9, -0.3], [0.0, 0.0, 1.0, -0.1, 0.0]], dtype=torch.float64
    )
    return 4 * _uniform(count, dimension, generator) @ slant


def _concentrated(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """Four dimensions in six columns, so dense near a part of fewer that it is mistaken for three."""
    p, q, r, s = _uniform(count, dimension, generator).unbind(1)
    turn = 2 * math.pi * p
    columns = [q**2 * turn.cos(), r**2 * turn.sin(), q + r + (q - s) ** 2, q - 2 * r + (p - s) ** 2]
    return torch.stack([*columns, -q - 2 * r + (r - s) ** 2, p**2 - q**2 + r**2 - s**2], dim=1)


def _curled(copies: int) -> _Draw:
    """Each coordinate turns the next one round a circle; the columns are given several times."""

    def draw(count: int, dimension: int, generator: torch.Generator) -> Tensor:
        p = _uniform(count, dimension, generator)
        radius, turn = p.roll(-1, dims=1), 2 * math.pi * p
        return torch.cat([radius * turn.cos(), radius * turn.sin()], dim=1).repeat(1, copies)

    return draw


def _wound_circle(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """A curve that winds eight times round a torus."""
    t = 2 * math.pi * _uniform(count, 1, generator)[:, 0]
    radius = 2 + (8 * t).cos()
    return torch.stack([radius * t.cos(), radius * t.sin(), (8 * t).sin()], dim=1)


def _helicoid(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    radius, turn = (10 * math.pi * _uniform(count, dimension, generator)).unbind(1)
    return torch.stack([radius * turn.cos(), radius * turn.sin(), turn / 2], dim=1)


def _helix(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """Five wide turns that hardly rise."""
    t = 10 * math.pi * _uniform(count, 1, generator)[:, 0]
    return torch.stack([100 * t.cos(), 100 * t.sin(), t], dim=1)


def _cube_surface(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """The faces of a cube of one column more, each face as often as chance has it."""
    x = _uniform(count, dimension + 1, generator)
    face = torch.randint(0, dimension + 1, (count, 1), generator=generator)
    side = torch.randint(0, 2, (count, 1), generator=generator).double()
    return x.scatter(1, face, side)


def _moebius(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """A band twisted ten times by half a turn."""
    turn, across = _uniform(count, dimension, generator).unbind(1)
    turn, across = 2 * math.pi * turn, across - 0.5
    radius = 1 + across * (5 * turn).cos()
    return torch.stack([radius * turn.cos(), radius * turn.sin(), across * (5 * turn).sin()], dim=1)


def _s_curve(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    along, across = _uniform(count, dimension, generator).unbind(1)
    t = 3 * math.pi * (along - 0.5)
    return torch.stack([t.sin(), 2 * across, t.sign() * (t.cos() - 1)], dim=1)


def _beta(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """Ten coordinates of the density Beta(10, 1/2), which rises without bound at one, bent into four columns each."""
    # the quotient of Gammas: of shape 10 as a sum of exponentials, of shape 1/2 as half a squared normal number
    ten = -torch.log1p(-_uniform(count, 10 * dimension, generator)).reshape(count, dimension, 10).sum(2)
    half = torch.randn(count, dimension, generator=generator, dtype=torch.float64).square() / 2
    x = ten / (ten + half)
    turn = 2 * math.pi * x
    return torch.cat([x * turn.cos().sin(), x * turn.sin().cos()], dim=1).repeat(1, 2)


def _crossed(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """Coordinates bent by those of the other end."""
    x = _uniform(count, dimension, generator)
    other = x.flip(1)
    return torch.cat([(x * other.cos()).tan(), (other * x.sin()).atan()], dim=1).repeat(1, 2)


def _paraboloid(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """A paraboloid over coordinates of a Burr distribution, with sines and squares of all columns beside it."""
    waits = -torch.log1p(-_uniform(count, dimension + 1, generator))
    x = waits[:, :1] / (waits[:, :1] + waits[:, 1:])
    x = torch.cat([x, x.square().sum(1, keepdim=True)], dim=1)
    return torch.cat([x, x.sin(), x.square()], dim=1)


def _of(kind: str) -> _Draw:
    return lambda count, dimension, generator: manifold(kind, count, dimension, generator=generator)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def benchmark_manifolds() -> Mapping[str, KnownManifold]:
    """By name, the manifolds of Hein and Audibert (2005) and of Campadelli and others (2015).

    >>> found = benchmark_manifolds()
    >>> len(found), found["moebius band"].dimension
    (24, 2)
    """
    hein, campadelli = "hein2005", "campadelli2015"
    rows: tuple[tuple[str, int, str, _Draw], ...] = (
        ("sphere 10", 10, hein, _of("sphere")),
        ("affine 3", 3, hein, _affine),
        ("concentrated 4", 4, hein, _concentrated),
        ("curled 4", 4, hein, _curled(1)),
        ("wound circle", 1, hein, _wound_circle),
        ("helicoid", 2, hein, _helicoid),
        ("curled 6", 6, hein, _curled(3)),
        ("swiss roll", 2, hein, _of("swiss roll")),
        ("curled 12", 12, hein, _curled(3)),
        ("cube 20", 20, hein, _of("cube")),
        ("cube surface 10", 10, hein, _cube_surface),
        ("cube surface 17", 17, hein, _cube_surface),
        ("cube surface 24", 24, hein, _cube_surface),
        ("cube surface 70", 70, hein, _cube_surface),
        ("moebius band", 2, hein, _moebius),
        ("gauss 20", 20, hein, _of("gauss")),
        ("s curve", 2, hein, _s_curve),
        ("helix", 1, hein, _helix),
        ("beta 10", 10, campadelli, _beta),
        ("crossed 18", 18, campadelli, _crossed),
        ("crossed 24", 24, campadelli, _crossed),
        ("paraboloid 3", 3, campadelli, _paraboloid),
        ("paraboloid 6", 6, campadelli, _paraboloid),
        ("paraboloid 9", 9, campadelli, _paraboloid),
    )
    return MappingProxyType({row[0]: KnownManifold(*row) for row in rows})
