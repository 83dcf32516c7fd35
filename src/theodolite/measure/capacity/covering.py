r"""How many balls cover a set, and how well random maps keep its distances: entropy numbers, codes, embeddings."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from theodolite.core.checks import InputError, as_tensor, at_least, finite_values, has_values

Norm = Literal["euclidean", "sup", "rms"]


@dataclass(frozen=True)
class Cover:
    """Centers (rows of the points) in the order found; ``radii[k]`` is how far the farthest point is from the first k + 1.

    The best k + 1 balls, with centers anywhere, have a radius between half of ``radii[k]`` and ``radii[k]``.
    """

    centers: Tensor
    radii: Tensor


def greedy_cover(points: Tensor, *, count: int, norm: Norm = "euclidean") -> Cover:
    """Each next center is the point farthest from all before it; ``points`` is (samples, coordinates).

    The centers and the farthest point lie at least the radius apart, so no ball of less than half of it holds two of
    them: the radius is within a factor two of the best. Costs ``count`` passes over the points. Source: gonzalez1985.

    >>> cover = greedy_cover(torch.tensor([[0.0], [1.0], [4.0]]), count=3)
    >>> cover.radii.tolist(), cover.centers.tolist()
    ([4.0, 1.0, 0.0], [0, 2, 1])
    """
    if points.ndim != 2 or not len(points):
        raise InputError(
            f"expected points of shape (samples, coordinates), got {tuple(points.shape)}; flatten the rest"
        )
    if not 1 <= count <= len(points):
        raise InputError(f"expected between 1 and {len(points)} balls, got {count}; take more samples")
    nearest = torch.full((len(points),), torch.inf, dtype=points.dtype, device=points.device)
    center, centers, radii = 0, [], []
    for _ in range(count):
        centers.append(center)
        nearest = torch.minimum(nearest, distances(points, points[center], norm))
        center = int(nearest.argmax())
        radii.append(nearest[center])
    return Cover(torch.tensor(centers, device=points.device), torch.stack(radii))


def distances(points: Tensor, center: Tensor, norm: Norm) -> Tensor:
    """From every point to one: the largest difference of coordinates, the root of their sum, or of their mean, of squares."""
    gap = points - center
    if norm == "sup":
        return gap.abs().amax(-1)
    return gap.square().sum(-1).sqrt() if norm == "euclidean" else gap.square().mean(-1).sqrt()


def lipschitz_code(values: Tensor, *, bits: int) -> Tensor:
    r"""What is read back of functions (count, places on [0, 1], first at 0, where f is 0) written down in ``bits`` bits each.

    On a grid of $h=1/(n+1)$: flat to the first place, then a bit says up or down by h. Source: kolmogorov1959.

    >>> lipschitz_code(torch.tensor([[0.0, 0.5, 1.0]]), bits=1).tolist()
    [[0.0, 0.0, 0.5]]
    """
    if values.ndim != 2:
        raise InputError(f"expected values of functions as rows, (count, places), got shape {tuple(values.shape)}")
    if bool(values.isnan().any()):
        raise InputError("expected values of functions, got NaN among them; leave those functions out")
    places = values.shape[1] - 1
    if places % (bits + 1):
        raise InputError(f"expected a multiple of {bits + 1} steps between places, got {places}; sample more finely")
    stride = places // (bits + 1)
    h = 1 / (bits + 1)
    level = torch.zeros_like(values[:, 0])
    levels = [level, level]
    for node in range(2, bits + 2):
        up = values[:, node * stride] >= level
        level = level + h * (2 * up.to(values.dtype) - 1)
        levels.append(level)
    nodes = torch.stack(levels, 1)  # (count, bits + 2)
    share = torch.arange(stride, dtype=values.dtype, device=values.device) / stride
    lines = nodes[:, :-1, None] * (1 - share) + nodes[:, 1:, None] * share
    return torch.cat([lines.flatten(1), nodes[:, -1:]], 1)


def zigzags(steps: int, *, steepness: float = 1.0, refine: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    r"""All $2^k$ functions from 0 with slopes ± ``steepness`` on k equal steps of [0, 1]: (2^k, k refine + 1) values.

    >>> zigzags(2).tolist()
    [[0.0, -0.5, -1.0], [0.0, 0.5, 0.0], [0.0, -0.5, 0.0], [0.0, 0.5, 1.0]]
    """
    at_least(1, steps=steps, refine=refine)
    bits = (torch.arange(2**steps)[:, None] >> torch.arange(steps)) & 1
    signs = (2 * bits - 1).to(dtype).repeat_interleave(refine, 1)
    walks = signs.cumsum(1) * (steepness / (steps * refine))
    return torch.cat([torch.zeros(len(walks), 1, dtype=dtype), walks], 1)


def gaussian_map(
    inputs: int, outputs: int, *, generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> Tensor:
    """A random matrix (outputs, inputs) that keeps squared lengths on average: entries of variance 1 / outputs."""
    at_least(1, inputs=inputs, outputs=outputs)
    return torch.randn(outputs, inputs, generator=generator, dtype=dtype) / math.sqrt(outputs)


@dataclass(frozen=True)
class LinearEmbedding:
    """What a linear ``matrix`` does to points: the least and the largest ratio of distances after and before."""

    least: float
    largest: float
    matrix: Tensor

    @property
    def distortion(self) -> float:
        """The largest ratio over the least."""
        return self.largest / self.least if self.least > 0 else float("inf")

    @property
    def lipschitz(self) -> float:
        """The norm of the map over the largest ratio: how far it is from 1-Lipschitz once it is so on the points."""
        return float(torch.linalg.matrix_norm(self.matrix, 2)) / self.largest


def embedding(matrix: Tensor, points: Tensor) -> LinearEmbedding:
    """How a linear map (outputs, inputs) changes the distances between different points (samples, inputs).

    >>> found = embedding(2 * torch.eye(2), torch.tensor([[0.0, 0.0], [1.0, 0.0], [3.0, 4.0]]))
    >>> round(found.distortion, 5), round(found.lipschitz, 5)
    (1.0, 1.0)
    """
    points = as_tensor(points)
    has_values(points=points)
    finite_values(points=points)
    before, after = pair_distances(points), pair_distances(points @ matrix.T)
    ratios = after[before > 0] / before[before > 0]
    if not ratios.numel():
        raise InputError("expected at least two different points, got none; pass more")
    return LinearEmbedding(float(ratios.min()), float(ratios.max()), matrix)


def pair_distances(points: Tensor) -> Tensor:
    """Distances of all pairs: by one product of matrices where that loses no digits that count, else one by one."""
    centered = points - points.mean(0)
    squares = centered.square().sum(1)
    rows, columns = torch.triu_indices(len(points), len(points), 1, device=points.device)
    gaps = (squares[:, None] + squares - 2 * centered @ centered.T)[rows, columns]
    exact = bool((gaps > 1e8 * torch.finfo(points.dtype).eps * squares.max()).all())
    return gaps.sqrt() if exact else torch.pdist(points)
