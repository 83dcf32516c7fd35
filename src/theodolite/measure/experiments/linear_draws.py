r"""Deep linear networks by drawing them: norms of products, evidence and posterior moments by importance sampling."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor

from theodolite.core.checks import at_least, each_at_least, positive
from theodolite.core.reading import Estimate

Quantity = Literal["evidence", "scale", "perpendicular", "perpendicular squared", "fit"]


@dataclass(frozen=True)
class Problem:
    r"""A deep linear network of ``sizes`` $n_0..n_L$, prior ``prior_variance``, and P ``samples`` of $\|\theta_*\|^2$ ``norm2``.

    In the basis of the samples' span, the Gram matrix is taken to be the identity: its determinant only shifts the log
    evidence. ``noise_variance`` adds observation noise of that variance, which the closed forms leave out.
    """

    sizes: tuple[int, ...]
    samples: int
    _: KW_ONLY
    norm2: float
    prior_variance: float = 1.0
    noise_variance: float = 0.0


@dataclass(frozen=True)
class Draws:
    """Importance sampling: log scales ``log_tau2``, their log weights, and how many equal draws they are worth."""

    log_tau2: Tensor
    log_weights: Tensor
    problem: Problem

    @property
    def effective(self) -> float:
        """The effective sample size, $(\\sum w)^2/\\sum w^2$."""
        w = (self.log_weights - self.log_weights.max()).exp()
        return float(w.sum() ** 2 / w.square().sum())

    def log_evidence(self) -> Estimate:
        """The log of the mean weight; its error is the relative error of that mean."""
        top = self.log_weights.max()
        w = (self.log_weights - top).exp()
        error = w.std() / math.sqrt(len(w)) / w.mean()
        return Estimate(float(top + w.mean().log()), float(error))

    def posterior_mean(self, values: Tensor) -> Estimate:
        """The weighted mean of ``values`` with the error of a ratio of means."""
        w = (self.log_weights - self.log_weights.max()).exp()
        w = w / w.mean()
        mean = float((w * values).mean())
        error = float((w * (values - mean)).std()) / math.sqrt(len(w))
        return Estimate(mean, error)

    def quantity(self, name: Quantity) -> Estimate:
        r"""The log evidence, or a posterior mean: $\tau^2$, $\|\theta_\perp\|^2$, its square, or $\|\theta_*\|^2/\tau^2$."""
        if name == "evidence":
            return self.log_evidence()
        tau2, free = self.log_tau2.exp(), self.problem.sizes[0] - self.problem.samples
        values = {
            "scale": tau2,
            "perpendicular": free * tau2,
            "perpendicular squared": free * (free + 2) * tau2**2,
            "fit": self.problem.norm2 / tau2,
        }
        return self.posterior_mean(values[name])


def prior_draws(problem: Problem, *, draws: int, generator: torch.Generator) -> Draws:
    r"""Networks drawn from the prior, matrix by matrix, all but the first layer, weighted by the likelihood of the targets.

    The first layer is averaged over exactly (Rao-Blackwell): given the others the function is Gaussian. Good for small
    networks; for large ones take `tilted_draws`.
    """
    at_least(1, draws=draws)
    n0, *hidden = problem.sizes
    log_tau2 = torch.full((draws,), math.log(problem.prior_variance / n0), dtype=torch.float64)
    if hidden:
        vector = torch.randn(draws, hidden[-1], generator=generator, dtype=torch.float64)
        vector *= math.sqrt(problem.prior_variance / hidden[-1])
        for fan_in in reversed(hidden[:-1]):
            matrix = torch.randn(draws, vector.shape[1], fan_in, generator=generator, dtype=torch.float64)
            vector = torch.bmm(vector[:, None], matrix)[:, 0] * math.sqrt(problem.prior_variance / fan_in)
        log_tau2 = log_tau2 + vector.square().sum(1).log()
    return Draws(log_tau2, _log_likelihood(problem, log_tau2), problem)


def tilted_draws(problem: Problem, *, scale_ratio: float, draws: int, generator: torch.Generator) -> Draws:
    r"""The layers' squared norms from Gamma laws of shape $\frac{n_l}2-\frac P2(1-\frac1z)$, near their posterior.

    ``scale_ratio`` is z. Any positive z is right, a good one makes the weights nearly equal: the ratio of the posterior
    scale to the samples' own.
    """
    positive(scale_ratio=scale_ratio)
    at_least(1, draws=draws)
    n0, *hidden = problem.sizes
    log_tau2 = torch.full((draws,), math.log(problem.prior_variance / n0), dtype=torch.float64)
    log_weights = torch.zeros(draws, dtype=torch.float64)
    for n in hidden:
        shape = max(0.25, n / 2 - problem.samples / 2 * (1 - 1 / scale_ratio))
        gamma = _log_gamma_draws(shape, draws, generator)
        log_tau2 = log_tau2 + math.log(2 * problem.prior_variance / n) + gamma
        log_weights = log_weights + (n / 2 - shape) * gamma + math.lgamma(shape) - math.lgamma(n / 2)
    return Draws(log_tau2, log_weights + _log_likelihood(problem, log_tau2), problem)


def product_log_norms(
    sizes: Sequence[int], *, nets: int, generator: torch.Generator, copies: int = 1, gated: bool = False
) -> Tensor:
    r"""$\ln\|\theta\|$ of ``nets`` products $W^{(L+1)}\cdots W^{(1)}$ with one output, entries $N(0,1/n_{l-1})$.

    ``sizes`` are $n_0..n_L$. ``copies`` repeats every unit; ``gated`` shrinks a random half of the entries tenfold, as
    a leaky ReLU of slope 0.1 does, and scales so that the mean square stays.
    """
    each_at_least(1, sizes=sizes)
    at_least(1, nets=nets, copies=copies)
    v = torch.ones(nets, 1, dtype=torch.float64)
    for fan_in in reversed(sizes):
        W = torch.randn(nets, v.shape[1], max(1, fan_in // copies), generator=generator, dtype=torch.float64)
        v = torch.bmm(v[:, None], W)[:, 0].repeat(1, copies) / math.sqrt(fan_in)
        if gated:
            on = torch.rand(v.shape, generator=generator, dtype=torch.float64) < 0.5
            v = v * (0.1 + 0.9 * on.double()) * math.sqrt(2 / 1.01)
    return v.norm(dim=1).log()


def _log_gamma_draws(shape: float, draws: int, generator: torch.Generator) -> Tensor:
    """Logarithms of Gamma variables, by Marsaglia and Tsang's rejection; a shape below one by a power of a uniform."""
    d = max(shape, shape + 1 if shape < 1 else shape) - 1 / 3
    c, parts, missing = 1 / math.sqrt(9 * d), [], draws
    while missing > 0:
        x = torch.randn(2 * missing + 16, generator=generator, dtype=torch.float64)
        u = torch.rand(len(x), generator=generator, dtype=torch.float64)
        v = (1 + c * x).clamp(min=1e-12) ** 3
        kept = (1 + c * x > 0) & (u.log() < 0.5 * x.square() + d - d * v + d * v.log())
        parts.append((d * v)[kept][:missing].log())
        missing -= len(parts[-1])
    found = torch.cat(parts)
    if shape < 1:
        found = found + torch.rand(draws, generator=generator, dtype=torch.float64).log() / shape
    return found


def _log_likelihood(problem: Problem, log_tau2: Tensor) -> Tensor:
    power = log_tau2.exp() + problem.noise_variance
    return -problem.samples / 2 * (2 * math.pi * power).log() - problem.norm2 / (2 * power)
