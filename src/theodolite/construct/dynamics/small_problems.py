"""Small problems with a known answer, by number: quadratic models, interpolation, separable classes, one-datum networks."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.theory.dynamics import QuadraticProblem

Array = np.ndarray[Any, np.dtype[np.float64]]


def quadratic_problem(instance: int, *, parameter_count: int, samples: int) -> tuple[QuadraticProblem, Array]:
    """A random quadratic model with targets, and a start; the linear part is well conditioned."""
    rng = np.random.default_rng(instance)
    left = np.linalg.qr(rng.normal(size=(parameter_count, parameter_count)))[0]
    right = np.linalg.qr(rng.normal(size=(samples, samples)))[0]
    rank = min(parameter_count, samples)
    features = left[:, :rank] @ np.diag(np.linspace(0.8, 1.6, rank)) @ right[:rank]
    raw = rng.normal(size=(samples, parameter_count, parameter_count)) / math.sqrt(2)
    problem = QuadraticProblem(features, raw + raw.transpose(0, 2, 1), rng.normal(size=samples))
    return problem, 0.5 * rng.normal(size=parameter_count)


def quadratic_slope(problem: QuadraticProblem, epsilon: float) -> Any:
    r"""The gradient of $\frac12\sum_\alpha(z_\alpha-y_\alpha)^2$ as a function of the parameters."""

    def slope(theta: Array) -> Array:
        bent = problem.second_derivatives @ theta  # (m, D)
        r = problem.features.T @ theta + 0.5 * epsilon * (bent @ theta) - problem.targets
        return np.asarray(problem.features @ r + epsilon * r @ bent)

    return slope


def interpolation(instance: int, *, samples: int = 4, dimension: int = 10) -> tuple[Array, Array, Array]:
    """Features and targets with more dimensions than samples, and the shape of a start."""
    rng = np.random.default_rng(instance)
    x = rng.normal(size=(samples, dimension)) / math.sqrt(samples)
    sparse = np.zeros(dimension)
    sparse[:2] = 1.0, -0.7
    return x, x @ sparse + 0.2 * rng.normal(size=samples), np.linspace(0.7, 1.3, dimension)


def diagonal_slope(x: Array, y: Array) -> Any:
    r"""The gradient of $\frac12|X(\theta_+^2-\theta_-^2)-y|^2$ by $(\theta_+,\theta_-)$."""

    def slope(theta: Array) -> Array:
        plus, minus = np.split(theta, 2)
        pull = 2 * x.T @ (x @ (plus**2 - minus**2) - y)
        return np.concatenate([pull * plus, -pull * minus])

    return slope


def separable(instance: int, *, samples: int = 12, dimension: int = 3) -> Array:
    """Rows $y_ix_i$ of two classes that a plane separates, in general position, no margin far below the others."""
    rng = np.random.default_rng(instance)
    rows = rng.normal(size=(samples, dimension))
    way = rng.normal(size=dimension)
    way /= np.linalg.norm(way)
    return np.asarray(rows + np.outer(0.7 + rng.random(samples) - np.minimum(rows @ way, 0.0) * 1.2, way))


class OneHidden(nn.Module):
    r"""$z=\sum_iv_i\,\sigma(u_i\cdot x/\sqrt d)/\sqrt m$ in double precision, from a number."""

    def __init__(self, instance: int, *, width: int, inputs: int, activation: Any = torch.relu) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(instance)
        self.u = nn.Parameter(torch.randn(width, inputs, generator=generator, dtype=torch.float64))
        self.v = nn.Parameter(torch.randn(width, generator=generator, dtype=torch.float64))
        self.datum = torch.randn(1, inputs, generator=generator, dtype=torch.float64)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (samples, 1)."""
        hidden: Tensor = self.activation(x @ self.u.T / math.sqrt(self.u.shape[1]))
        return hidden @ self.v[:, None] / math.sqrt(len(self.v))


def frozen_gate_start(net: OneHidden) -> tuple[float, float, float]:
    r"""Output, tangent kernel and coupling $c=|x|^2/md$ of the ReLU network on its datum, by the formulas of its gates."""
    x, u, v = net.datum[0].numpy(), net.u.detach().numpy(), net.v.detach().numpy()
    scale = u.shape[0] * u.shape[1]
    open_, before = (u @ x >= 0), u @ x
    output = float((v * before * open_).sum() / math.sqrt(scale))
    curvature = float(((before**2 + (x @ x) * v**2) * open_).sum() / scale)
    return output, curvature, float(x @ x) / scale
