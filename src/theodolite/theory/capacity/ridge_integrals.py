"""Functions with a known Fourier transform as means of ridge functions, and what random units make of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theodolite.core.checks import InputError, at_least, positive
from theodolite.theory.capacity.smoothing import smoothing_transform

NODES = 96


@dataclass(frozen=True)
class RadialFunction:
    r"""$f(x)=(2\pi)^{-d}\int\hat f(|\xi|)e^{i\xi\cdot x}d\xi$, a mean of ridges $g(\theta\cdot x)$ over all directions $\theta$.

    $g(t)=(2\pi)^{-d}|S^{d-1}|\int_0^\Omega\hat f(\rho)\rho^{d-1}\cos(\rho t)d\rho$; the transform is taken as nothing
    beyond ``cutoff`` $\Omega$.

    >>> f = gaussian(1)
    >>> abs(float(f.profile(torch.tensor(0.5, dtype=torch.float64))) - math.exp(-0.125)) < 1e-12
    True
    """

    transform: Callable[[Tensor], Tensor]
    dimension: int = 1
    cutoff: float = 8.0

    def profile(self, t: Tensor, *, derivative: int = 0, order: int = 0, box: float = 0.5) -> Tensor:
        r"""The derivative of g, sharpened by $1/\hat B_k$ so that smoothing of that order gives it back.

        B is a B-spline of 2k boxes of width ``box``; refused unless cutoff times box is below $2\pi$.
        """
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        rho = torch.as_tensor((nodes + 1) * self.cutoff / 2, dtype=t.dtype, device=t.device)
        weight = torch.as_tensor(weights * self.cutoff / 2, dtype=t.dtype, device=t.device)
        d = self.dimension
        sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
        density = weight * self.transform(rho) * rho ** (d - 1 + derivative) * (sphere / (2 * math.pi) ** d)
        if order:
            density = density / smoothing_transform(rho, order, smoothing_width=order * box)
        return torch.cos(t[..., None] * rho + derivative * math.pi / 2) @ density

    def value(self, x: Tensor) -> Tensor:
        """f at points in rows, by the mean over equally spaced directions; dimension 1 or 2."""
        directions = ridge_directions(self, like=x)
        return self.profile(x @ directions.T).mean(-1)


def gaussian(dimension: int, *, scale: float = 1.0) -> RadialFunction:
    r"""$e^{-|x|^2/2w^2}$, cut off where its transform is $10^{-14}$ of its peak.

    >>> abs(float(gaussian(2).value(torch.tensor([[0.6, 0.8]], dtype=torch.float64))[0]) - math.exp(-0.5)) < 1e-10
    True
    """
    at_least(0, dimension=dimension)
    positive(scale=scale)

    def transform(rho: Tensor) -> Tensor:
        size = math.pow(2 * math.pi * scale**2, dimension / 2)
        return size * torch.exp(-0.5 * (scale * rho) ** 2)

    return RadialFunction(transform, dimension, cutoff=8.0 / scale)


def ridge_directions(function: RadialFunction, *, like: Tensor, radius: float = 1.0) -> Tensor:
    """Directions whose mean is the mean over all, to rounding, for points within ``radius``; dimension 1 or 2."""
    positive(radius=radius)
    if function.dimension == 1:
        return torch.ones(1, 1, dtype=like.dtype, device=like.device)
    if function.dimension != 2:
        raise InputError(f"expected a function of one or two variables, got {function.dimension}; take a slice of it")
    # The rule of 2M points on the circle errs by J_2M(cutoff radius), nothing once 2M exceeds the argument by 24
    count = math.ceil((function.cutoff * radius + 24) / 2)
    angle = torch.arange(count, dtype=like.dtype, device=like.device) * (math.pi / count)
    return torch.stack([torch.cos(angle), torch.sin(angle)], 1)


def one_group_error(function: RadialFunction, *, units: int) -> float:
    r"""Mean squared error on $[-1,1]$ of one group of ReLUs with uniform kinks, in one dimension.

    To choose the number of units: what `representation` with one group will leave.

    $\frac1N\bigl(2\int g''(T)^2(t-T)_+^2dT-h(t)^2\bigr)$, its mean over t; h is the function less its tangent at -1.

    Source: bresler2020, Theorem 2. Differs from the source: exact, where a bound $C_f^2/N$ is given there.
    """
    if function.dimension != 1:
        raise InputError(f"expected a function of one variable, got {function.dimension}")
    nodes, weights = (torch.as_tensor(a) for a in np.polynomial.legendre.leggauss(NODES))
    curve = function.profile(nodes, derivative=2) ** 2
    # The mean over t of (t - T)_+^2 is (1 - T)^3 / 6
    second = 2 * float((weights * curve * (1 - nodes) ** 3 / 6).sum())
    edge = torch.tensor(-1.0, dtype=torch.float64)
    tangent = function.profile(edge) + function.profile(edge, derivative=1) * (nodes + 1)
    return (second - float((weights * (function.profile(nodes) - tangent) ** 2).sum()) / 2) / units
