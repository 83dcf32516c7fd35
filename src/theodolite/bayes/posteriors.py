"""A deep linear network that fits its samples exactly."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.bayes.results import Prediction, Selection, new_inputs, samples_of, selection
from theodolite.core.checks import InputError
from theodolite.core.reading import Estimate
from theodolite.theory.bayes import (
    LinearNet,
    best_log_evidence,
    best_variance,
    effective_depth,
    log_evidence,
    log_scale_density,
    scale_moment,
)


@dataclass(frozen=True)
class LinearPosterior:
    r"""What a deep linear network with Gaussian weights believes once it has seen ``x`` (P, features) and ``y`` (P).

    Weights have the prior variance $\sigma^2$ over fan-in; ``widths`` are those of the hidden layers. With
    ``prior_variance=None`` the one of largest evidence is taken. Everything is exact at these sizes: the evidence is a
    Meijer function, found by a contour integral to some 1e-10. Source: hanin2023.

    >>> x, y = torch.eye(3, 5), torch.tensor([1.0, 2.0, -1.0])
    >>> flat = LinearPosterior(x, y, widths=())
    >>> round(flat.evidence.value, 6) == round(-1.5 * math.log(2 * math.pi / 5) - 5 * 6 / 2, 6)  # N(y; 0, 1/5)
    True
    >>> found = flat.predict(torch.eye(5))
    >>> found.mean.tolist(), [round(v, 6) for v in found.variance.tolist()]
    ([1.0, 2.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.2, 0.2])
    """

    x: Any = field(repr=False)
    y: Any = field(repr=False)
    widths: tuple[int, ...] = (60, 60)
    prior_variance: float | None = 1.0

    def __post_init__(self) -> None:
        x, y = _regression(self.x, self.y)
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "widths", tuple(int(n) for n in self.widths))
        net = LinearNet(x.shape[1], self.widths, self.prior_variance or 1.0)
        if self.prior_variance is None:
            object.__setattr__(self, "prior_variance", best_variance(net, **self._facts_of_samples))
        elif self.prior_variance == 0:
            raise InputError("expected a positive prior variance, got 0; None takes the one of largest evidence")

    @property
    def net(self) -> LinearNet:
        """The network's sizes and prior."""
        assert self.prior_variance is not None
        return LinearNet(self.x.shape[1], self.widths, self.prior_variance)

    @cached_property
    def weights(self) -> Tensor:
        r"""$\theta_*$, the shortest weights that fit: the posterior mean, whatever the widths."""
        U, s, V = self._svd
        return V.mH @ ((U.mH @ self.y) / s)

    @cached_property
    def evidence(self) -> Estimate:
        """The log density of the targets under the prior; ``stderr`` bounds the error of rounding."""
        return log_evidence(self.net, **self._facts_of_samples, log_det=self._log_det)

    @property
    def effective_depth(self) -> float:
        r"""$P\sum1/n_l$: near 0 the prior sets the scale of what the samples leave open, from some units on the samples do."""
        return effective_depth(self.net, samples=len(self.y))

    def predict(self, x: Any, *, draws: int = 100, generator: torch.Generator | None = None) -> Prediction:
        r"""Mean $\theta_*\cdot x$, variance $\|x_\perp\|^2E\tau^2$ with $x_\perp$ the part of x across the samples, and draws.

        A draw is one function: a scale from its exact posterior times a Gaussian direction. Without a generator the
        draws are those of seed 0.
        """
        rows = new_inputs(x, self.x)
        V = self._svd[2]
        across = rows - rows @ V.mH @ V
        across = across.where(across.norm(dim=1, keepdim=True) > 1e-12 * rows.norm(dim=1, keepdim=True), 0.0)
        mean = rows @ self.weights
        variance = across.square().sum(1) * scale_moment(self.net, 1, **self._facts_of_samples)
        source = generator or torch.Generator().manual_seed(0)
        scales = self._scales(draws, source).to(rows)
        noise = torch.randn(draws, rows.shape[1], generator=source, dtype=torch.float64, device=source.device).to(rows)
        return Prediction(mean, variance, mean + scales[:, None] * (noise @ across.mH))

    def select(
        self, depths: Iterable[int] = (0, 1, 2, 4, 8), widths: Iterable[int] = (30, 100, 300), *, tune: bool = False
    ) -> Selection:
        """Compare shapes by evidence: every depth (hidden layers) with every width, all on these samples.

        All have this posterior's prior variance or, with ``tune``, each the one of largest evidence: then no shape beats the
        linear model, whose scale fits the samples exactly, and the weights say how little depth costs. Weights are posterior
        probabilities of the shapes, all equal before. Depth 0 is one shape, whatever the width.
        """
        shapes = list(dict.fromkeys((int(n),) * int(depth) for depth in depths for n in widths))
        found = []
        for shape in shapes:
            net = LinearNet(self.x.shape[1], shape, self.net.prior_variance)
            if tune:
                net = LinearNet(net.inputs, shape, best_variance(net, **self._facts_of_samples))
            found.append(
                (shape, net.prior_variance, log_evidence(net, **self._facts_of_samples, log_det=self._log_det))
            )
        return selection(found, best_log_evidence(**self._facts_of_samples, log_det=self._log_det))

    @cached_property
    def _svd(self) -> Any:
        return torch.linalg.svd(self.x, full_matrices=False)

    @property
    def _log_det(self) -> float:
        return 2 * float(self._svd[1].log().sum())

    @property
    def _facts_of_samples(self) -> dict[str, Any]:
        return {"samples": len(self.y), "norm2": float(self.weights.square().sum())}

    def _scales(self, draws: int, generator: torch.Generator) -> Tensor:
        r"""Draws of $\tau$: its log density at 129 places, a spline between, the inverse of the distribution function."""
        from scipy.interpolate import CubicSpline

        if not self.widths:
            return torch.full((draws,), math.sqrt(self.net.prior_variance / self.net.inputs), dtype=torch.float64)
        first, second = (scale_moment(self.net, -power, **self._facts_of_samples) for power in (0.5, 1.0))
        center = -math.log(second)  # moments of 1/tau exist where those of tau may be dominated by a tail
        spread = math.sqrt(max(1e-6, 4 * math.log(second / first**2)))
        low, high = self._support(center, spread)
        coarse = np.linspace(low, high, 129)
        log_density = CubicSpline(coarse, log_scale_density(self.net, coarse, **self._facts_of_samples))
        fine = np.linspace(low, high, 8193)
        density = np.exp(log_density(fine))
        total = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(fine))])
        uniform = torch.rand(draws, generator=generator, dtype=torch.float64, device=generator.device).cpu().numpy()
        return torch.as_tensor(np.exp(0.5 * np.interp(uniform * total[-1], total, fine)))

    def _support(self, center: float, spread: float) -> tuple[float, float]:
        """Where the density of log tau squared is above 1e-13 of that at the center; it has one hump."""

        def log_density(place: float) -> float:
            return float(log_scale_density(self.net, np.array([place]), **self._facts_of_samples)[0])

        peak, ends = log_density(center), [center - 6 * spread, center + 6 * spread]
        for side, sign in enumerate((-1, 1)):
            while log_density(ends[side]) > peak - 30:
                ends[side] += sign * 2 * spread
        return ends[0], ends[1]


def _regression(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """The samples, refused where no network interpolates them."""
    x, y = samples_of(x, y)
    samples, features = x.shape
    if samples > features:
        raise InputError(
            f"expected at most as many samples as features ({features}), got {samples}; without noise the model cannot fit "
            "more: take NoisyLinearPosterior, fewer samples, or more features (products of columns)"
        )
    rows: Sequence[int] = torch.unique(x, dim=0, return_inverse=True)[1].tolist()
    if len(set(rows)) < samples:
        second = next(i for i, row in enumerate(rows) if row in rows[:i])
        raise InputError(
            f"expected different inputs, got the same in samples {rows.index(rows[second])} and {second}; keep one of them, "
            "with the mean of their targets, or take NoisyLinearPosterior"
        )
    s = torch.linalg.svdvals(x)
    rank = int((s > s[0] * features * torch.finfo(torch.float64).eps).sum())
    if rank < samples:
        raise InputError(
            f"expected linearly independent inputs, got {samples} samples of rank {rank}; drop {samples - rank} of them or "
            "add features"
        )
    if not bool(y.any()):
        raise InputError("expected targets that are not all zero, got zeros; they say nothing of a scale")
    return x, y
