"""A deep linear network whose targets carry Gaussian noise."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from theodolite.bayes.results import Prediction, Selection, new_inputs, samples_of, selection
from theodolite.core.checks import InputError
from theodolite.core.reading import Estimate
from theodolite.theory.bayes import LinearNet, ScalePosterior, log_likelihood, noisy_scale_posterior


@dataclass(frozen=True)
class NoisyLinearPosterior:
    r"""The same network where targets carry Gaussian noise: any number of samples, repeated or dependent ones too.

    Given the scale $\tau$ it is Bayesian linear regression with prior $N(0,\tau^2)$; the prior of the scale is the network's,
    and the integral over it is done to some 1e-9. ``noise_variance`` is that of one target.

    >>> x, y = torch.ones(2, 1), torch.tensor([1.0, 3.0])  # the same input twice
    >>> found = NoisyLinearPosterior(x, y, widths=(), noise_variance=1.0).predict(torch.ones(1, 1))
    >>> round(found.mean.item(), 6), round(found.variance.item(), 6)  # 4 / (2 + 1), 1 / (2 + 1)
    (1.333333, 0.333333)
    """

    x: Any = field(repr=False)
    y: Any = field(repr=False)
    widths: tuple[int, ...] = (60, 60)
    prior_variance: float = 1.0
    noise_variance: float = 0.1

    def __post_init__(self) -> None:
        x, y = samples_of(self.x, self.y)
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "widths", tuple(int(n) for n in self.widths))
        if not 0 < self.noise_variance < math.inf:
            raise InputError(
                f"expected a positive noise variance, got {self.noise_variance}; without noise take LinearPosterior"
            )
        LinearNet(x.shape[1], self.widths, self.prior_variance)  # refuses bad sizes now

    @cached_property
    def scale(self) -> ScalePosterior:
        """The posterior of the scale, and the evidence."""
        return self._scale_of(self.widths)

    @property
    def evidence(self) -> Estimate:
        """The log density of the targets under the prior; ``stderr`` is the error of the quadrature."""
        return self.scale.evidence

    def predict(self, x: Any, *, draws: int = 100, generator: torch.Generator | None = None) -> Prediction:
        """Posterior mean and variance of the function, without the noise of a new target, and whole functions drawn."""
        rows = new_inputs(x, self.x)
        U, s, V = self._svd
        along, seen = rows @ V.mH, U.mH @ self.y  # (new, r), (r)
        across = rows - along @ V
        tau2 = torch.as_tensor(np.exp(self.scale.log_tau2)).to(rows)
        weights = torch.as_tensor(self.scale.weights).to(rows)
        power = tau2[:, None] * s.square() + self.noise_variance  # (scales, r)
        centers = tau2[:, None] * s * seen / power  # means of theta along the samples' directions
        spreads = tau2[:, None] * self.noise_variance / power  # and its variances there
        means = centers @ along.mH  # (scales, new)
        mean = weights @ means
        within = tau2[:, None] * across.square().sum(1) + spreads @ along.square().mH
        variance = weights @ (within + (means - mean).square())
        source = generator or torch.Generator().manual_seed(0)
        picks = torch.multinomial(weights.to(source.device), draws, replacement=True, generator=source).to(rows.device)
        shape = (draws, len(s) + rows.shape[1])
        noise = torch.randn(shape, generator=source, dtype=torch.float64, device=source.device).to(rows)
        inner = centers[picks] + spreads[picks].sqrt() * noise[:, : len(s)]
        outer = tau2[picks].sqrt()[:, None] * (noise[:, len(s) :] @ across.mH)
        return Prediction(mean, variance, inner @ along.mH + outer)

    def select(self, depths: Iterable[int] = (0, 1, 2, 4), widths: Iterable[int] = (30, 100, 300)) -> Selection:
        """Compare shapes by evidence at this prior and noise variance; the bound is that of the best single scale."""
        shapes = list(dict.fromkeys((int(n),) * int(depth) for depth in depths for n in widths))
        found = [(shape, self.prior_variance, self._scale_of(shape).evidence) for shape in shapes]
        scales = np.linspace(-40, 40, 8001) + math.log(self.prior_variance / self.x.shape[1])
        return selection(
            found, float(log_likelihood(scales, *self._spectrum, noise_variance=self.noise_variance).max())
        )

    def _scale_of(self, widths: tuple[int, ...]) -> ScalePosterior:
        net = LinearNet(self.x.shape[1], widths, self.prior_variance)
        return noisy_scale_posterior(net, *self._spectrum, noise_variance=self.noise_variance)

    @cached_property
    def _svd(self) -> Any:
        return torch.linalg.svd(self.x, full_matrices=False)

    @cached_property
    def _spectrum(self) -> tuple[Any, Any]:
        """Eigenvalues of the Gram matrix and squared targets in its basis, zeros for what the inputs cannot reach."""
        U, s, _ = self._svd
        seen = U.mH @ self.y
        rest = max(0.0, float(self.y.square().sum() - seen.square().sum()))
        missing = len(self.y) - len(s)
        spectrum = np.concatenate([s.square().cpu().numpy(), np.zeros(missing)])
        squares = np.concatenate([seen.square().cpu().numpy(), np.full(missing, rest / max(1, missing))])
        return spectrum, squares
