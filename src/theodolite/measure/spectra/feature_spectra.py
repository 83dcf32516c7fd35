"""How fast the spectrum of features decays (alpha-ReQ), from a covariance gathered in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from theodolite.core.checks import InputError, real_values
from theodolite.measure.spectra.eigenvalues import gram_eigenvalues

DecayRule = Literal["least squares", "reptrix"]
FEWEST_RANKS = 5


def feature_rows(features: Tensor, *, positions: Literal["pooled", "each"] = "pooled") -> Tensor:
    """Features as one row a sample (``pooled`` over positions) or one row a position (``each``).

    Two axes are (sample, feature); three are (sample, position, feature), as in transformers; four or five are (sample,
    channel, height, width, ...), as in convolutional networks.

    >>> feature_rows(torch.zeros(2, 3, 4, 4)).shape, feature_rows(torch.zeros(2, 7, 5), positions="each").shape
    (torch.Size([2, 3]), torch.Size([14, 5]))
    """
    if features.ndim < 2:
        raise InputError(f"expected features of at least two axes, got {tuple(features.shape)}; stack the samples")
    if features.ndim == 2:
        return features
    rows = features if features.ndim == 3 else features.flatten(2).transpose(1, 2)  # (n, positions, d)
    return rows.mean(1) if positions == "pooled" else rows.flatten(0, 1)


@dataclass(frozen=True)
class FeatureCovariance:
    """Count, mean and centered scatter of features seen so far, in float64; adding two gives that of both together.

    Each batch is centered by its own mean before its products are summed, so that a large common offset costs no digits.
    Source: chan1983.

    >>> x = torch.arange(12.0).reshape(6, 2) ** 2
    >>> halves = FeatureCovariance.of(x[:2]) + FeatureCovariance.of(x[2:])
    >>> torch.allclose(halves.covariance, torch.cov(x.double().T))
    True
    """

    count: int
    mean: Tensor  # (d,)
    scatter: Tensor  # (d, d)

    @classmethod
    def of(cls, features: Tensor) -> FeatureCovariance:
        """That of one batch, (n, d)."""
        if features.ndim != 2 or not len(features):
            raise InputError(f"expected features as (samples, features), got {tuple(features.shape)}; use feature_rows")
        x = features.detach().double()
        mean = x.mean(0)
        x = x - mean
        return cls(len(x), mean, x.T @ x)

    def __add__(self, other: FeatureCovariance) -> FeatureCovariance:
        count = self.count + other.count
        apart = other.mean - self.mean
        scatter = self.scatter + other.scatter + (self.count * other.count / count) * torch.outer(apart, apart)
        return FeatureCovariance(count, self.mean + apart * (other.count / count), scatter)

    @property
    def covariance(self) -> Tensor:
        """Scatter over count less one."""
        return self.scatter / (self.count - 1)

    @property
    def eigenvalues(self) -> Tensor:
        """Of the covariance, ascending."""
        found: Tensor = torch.linalg.eigvalsh(self.covariance)
        return found.clamp(min=0.0)


@dataclass(frozen=True, slots=True)
class FeatureDecay:
    r"""The rank exponent of a feature spectrum, $\lambda_k\propto k^{-\alpha}$ over the ranks of ``window``.

    ``stderr`` is that of the regression, which takes its residuals as independent; ``low`` and ``high`` are the smallest
    and largest exponents over neighboring windows (either end halved or doubled), and usually the honest error.
    ``note`` says what limits the spectrum; where there is no fit ``alpha`` is not a number and ``note`` says why.
    """

    alpha: float
    stderr: float
    r_squared: float
    window: tuple[int, int]
    low: float
    high: float
    participation_ratio: float
    samples: int
    dimension: int
    rule: DecayRule = "least squares"
    note: str = ""


def feature_decay(
    features: Tensor | FeatureCovariance, *, window: tuple[int, int] = (11, 100), rule: DecayRule = "least squares"
) -> FeatureDecay:
    r"""alpha-ReQ: weighted least squares of log eigenvalue on log rank of the centered covariance.

    Weights 1/rank over the ranks from ``window[0]`` to ``window[1]``, both included, as far as the spectrum reaches; the
    window moves the answer (1.66 to 2.55 has been seen on one layer), so it is part of it. Of n samples at most n - 1
    directions have variance. Where the window holds too few of them alpha is NaN, and ``note`` says so.

    ``rule="reptrix"`` is the estimator of that public repository: an index range counted from zero, so ranks
    ``window[0] + 1`` to ``window[1]``, weights in float32, and R^2 unweighted from rank ``window[0] + 2`` to 100. Source:
    agrawal2022.

    >>> x = torch.linalg.qr(torch.randn(400, 200, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    >>> round(feature_decay((x - x.mean(0)) * torch.arange(1, 201) ** -0.75, window=(11, 100)).alpha, 1)
    1.5
    """
    real_values(features=features)
    if rule not in get_args(DecayRule) or not 1 <= window[0] < window[1]:
        raise InputError(f"expected a rule among {get_args(DecayRule)} and 1 <= first < last, got {rule!r}, {window}")
    if isinstance(features, FeatureCovariance):
        samples, dimension, found = features.count, len(features.mean), features.eigenvalues
    else:
        samples, dimension = features.shape
        if not samples or not dimension:
            raise InputError(f"expected features (samples, dimension), got shape {tuple(features.shape)}; pass some")
        x = features.detach().double()
        found = gram_eigenvalues(x - x.mean(0)) / max(samples - 1, 1)
    values = found.cpu().numpy()[::-1]
    return _decay(values, window, rule, samples, dimension)


def _decay(
    values: NDArray[np.float64], window: tuple[int, int], rule: DecayRule, samples: int, dimension: int
) -> FeatureDecay:
    total = float(values.sum())
    ratio = total**2 / float((values**2).sum()) if total > 0 else 0.0
    floor = values.size * np.finfo(np.float64).eps * values[0]
    rank = min(int((values > floor).sum()), samples - 1)
    first, last = window[0] + (rule == "reptrix"), min(window[1], rank)
    few = f"{samples} samples of {dimension} features: rank at most {samples - 1}" if samples <= dimension else ""
    if last - first + 1 < FEWEST_RANKS:
        nan = math.nan
        why = f"only {rank} eigenvalues above rounding, too few for ranks {first} to {window[1]}"
        note = "; ".join(filter(None, (why, few)))
        return FeatureDecay(nan, nan, nan, (first, last), nan, nan, ratio, samples, dimension, rule, note)
    logs = np.log(values[:rank])
    alpha, stderr, r_squared = _weighted_slope(logs, first, last)
    if rule == "reptrix":
        alpha, r_squared = _reptrix(logs, first, last)
    others = [alpha]
    for a, b in ((first // 2, last), (2 * first, last), (first, last // 2), (first, 2 * last)):
        a, b = max(a, 1), min(b, rank)
        if b - a + 1 >= FEWEST_RANKS:
            others.append(_weighted_slope(logs, a, b)[0])
    return FeatureDecay(
        alpha, stderr, r_squared, (first, last), min(others), max(others), ratio, samples, dimension, rule, few
    )


def _weighted_slope(logs: NDArray[np.float64], first: int, last: int) -> tuple[float, float, float]:
    """Slope (its sign turned), its standard error and weighted R^2 of log eigenvalue on log rank, weights 1/rank."""
    rank = np.arange(first, last + 1, dtype=np.float64)
    x, y, w = np.log(rank), logs[first - 1 : last], 1 / rank
    x, y = x - np.average(x, weights=w), y - np.average(y, weights=w)
    moment, total = float((w * x * x).sum()), float((w * y * y).sum())
    slope = float((w * x * y).sum()) / moment
    left = float((w * (y - slope * x) ** 2).sum())
    return -slope, math.sqrt(left / (rank.size - 2) / moment), 1 - left / total if total > 0 else 1.0


def _reptrix(logs: NDArray[np.float64], first: int, last: int) -> tuple[float, float]:
    rank = np.arange(first, last + 1)
    x = np.stack([-np.log(rank), np.ones(rank.size)], axis=1)
    w = (1.0 / rank.astype(np.float32))[:, None]
    alpha, height = np.linalg.solve(x.T @ (x * w), (w * x).T @ logs[first - 1 : last])
    seen = logs[first : min(100, logs.size)]
    left = seen - (height - alpha * np.log(np.arange(first, first + seen.size) + 1))
    spread = float(((seen - seen.mean()) ** 2).sum()) if seen.size else 0.0
    return float(alpha), 1 - float((left**2).sum()) / spread if spread > 0 else math.nan
