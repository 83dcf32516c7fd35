"""Groups of random ReLU units that each correct what the groups before left: least squares, or the theorem's own weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.theory.capacity import cosine_density, dual_scale


@dataclass(frozen=True)
class UnitGroup:
    """Units $(w_i\\cdot z-T_i)_+$ and their output weights."""

    weight: Tensor  # (units, inputs)
    threshold: Tensor  # (units,)
    output: Tensor  # (outputs, units)

    def features(self, points: Tensor) -> Tensor:
        """What each unit says of each point."""
        return torch.relu(points @ self.weight.T - self.threshold)  # (n, units)

    def outputs(self, points: Tensor) -> Tensor:
        """What the group says of each point, a block of units at a time: groups of the literal scheme are wide."""
        total = torch.zeros(len(points), len(self.output), dtype=points.dtype, device=points.device)
        for block in _blocks(len(self.weight), len(points)):
            part = UnitGroup(self.weight[block], self.threshold[block], self.output[:, block])
            total += part.features(points) @ part.output.T
        return total

    def shares(self, points: Tensor, *, parts: int) -> Tensor:
        """What each of so many equal parts of the group says, as if it were a group by itself; one output."""
        seen = self.features(points) * (self.output[0] * parts)
        return seen.reshape(len(points), parts, -1).sum(-1).T  # (parts, n)

    def scaled(self, factor: Tensor) -> UnitGroup:
        """The same units with each output's weights multiplied."""
        return UnitGroup(self.weight, self.threshold, self.output * factor[:, None])


def least_squares_group(points: Tensor, rest: Tensor, *, units: int, generator: torch.Generator) -> UnitGroup:
    r"""Random directions, kinks placed in gaps between the points, output weights by least squares on ``rest``.

    Unit i looks along a random direction and begins half-way below a point of its own, the points taken in a random
    order: uniform kinks would leave gaps empty in low dimension, and the points on both sides inseparable.
    """
    count = len(points)
    direction = _normal(units, points.shape[1], like=points, generator=generator)
    direction = direction / direction.norm(dim=1, keepdim=True)
    order = torch.cat([_permutation(count, generator) for _ in range(-(-units // count))])[:units].to(points.device)
    seen = points @ direction.T  # (n, units)
    own = seen[order, torch.arange(units, device=points.device)]
    below = torch.where(seen < own, seen, torch.full_like(seen, -math.inf)).amax(0)
    spread = (seen.amax(0) - seen.amin(0)).clamp(min=1e-3)
    lowest = torch.isinf(below)  # nothing below: begin a little under the point
    threshold = torch.where(lowest, own - spread / count, 0.5 * (own + below))
    group = UnitGroup(direction, threshold, torch.zeros(rest.shape[1], units, dtype=points.dtype, device=points.device))
    return UnitGroup(direction, threshold, least_squares(group.features(points), rest).T)


def least_squares(features: Tensor, targets: Tensor) -> Tensor:
    r"""Weights b that make $|Ab-y|^2$ smallest, of least norm where many do; by QR, refined once.

    Where A is rank deficient to rounding, by singular values.
    """
    wide = features.shape[1] > features.shape[0]
    q, r = torch.linalg.qr(features.T if wide else features)
    diagonal = r.diagonal().abs()
    if not bool((diagonal > 1e-12 * diagonal.max()).all()):
        if features.is_cuda:
            return torch.linalg.pinv(features, rtol=1e-12) @ targets
        # Not gelsy: torch hands LAPACK pivots that are not set, and the solution changes from call to call
        return torch.linalg.lstsq(features, targets, rcond=1e-12, driver="gelsd").solution
    found = torch.zeros(features.shape[1], targets.shape[1], dtype=features.dtype, device=features.device)
    for _ in range(2):
        rest = targets - features @ found
        if wide:
            found = found + q @ torch.linalg.solve_triangular(r.T, rest, upper=False)
        else:
            found = found + torch.linalg.solve_triangular(r, q.T @ rest, upper=True)
    return found


def literal_group(
    points: Tensor, rest: Tensor, *, units: int, theta: float, margin: float = 1.0, generator: torch.Generator
) -> UnitGroup:
    r"""The theorem's group: frequencies $\xi\sim N(0,\sigma^2I)$, units $(\xi\cdot z/\alpha-T)_+$, weights $|F|\eta(T)/N_0$.

    $\alpha=\max_j|\xi\cdot z_j|$; F is the transform of the residual, $-\arg F$ the phase. Its mean is $K$ times the
    residual at every point. Outputs share units and differ in weights.

    Source: bresler2020, Theorem 1.
    """
    scale = dual_scale(len(points), theta, margin=margin)
    xi = scale * _normal(units, points.shape[1], like=points, generator=generator)
    uniform = torch.rand(units, generator=generator, dtype=points.dtype, device=generator.device).to(points.device)
    threshold = 4 * uniform - 2
    parts = []
    for block in _blocks(units, len(points)):
        angles = xi[block] @ points.T  # (units, n)
        transform = torch.complex(torch.cos(angles) @ rest, torch.sin(angles) @ rest)  # (units, outputs)
        alpha = angles.abs().amax(1, keepdim=True).clamp(min=1e-12)
        density = cosine_density(threshold[block, None], alpha, -transform.angle())
        parts.append((alpha, transform.abs() * density))
    alphas, outputs = (torch.cat(column) for column in zip(*parts, strict=True))
    return UnitGroup(xi / alphas, threshold, outputs.T / units)


def line_search(rest: Tensor, correction: Tensor) -> Tensor:
    r"""$\gamma=\langle r,\hat y\rangle/|\hat y|^2$ for each output: with it no group makes anything worse."""
    energy = correction.square().sum(0)
    return torch.where(energy > 0, (rest * correction).sum(0) / energy.clamp(min=1e-300), torch.zeros_like(energy))


def _blocks(units: int, count: int) -> list[slice]:
    size = max(1, 2**21 // count)
    return [slice(start, min(start + size, units)) for start in range(0, units, size)]


def _normal(rows: int, columns: int, *, like: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.randn(rows, columns, generator=generator, dtype=like.dtype, device=generator.device)
    return drawn.to(like.device)


def _permutation(count: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)
