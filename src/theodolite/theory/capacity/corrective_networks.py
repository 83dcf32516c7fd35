"""Corrective networks: a cosine as a mean of ReLUs, the data's Fourier dual, and how much one random group corrects."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core.checks import InputError, as_tensor, at_least, finite_values, not_negative, positive
from theodolite.theory.capacity.smoothing import smoothing_transform


def cosine_density(t: Tensor, frequency: Tensor, phase: Tensor, *, half: float = 1.0) -> Tensor:
    r"""$\eta(T)$ with $\cos(\alpha t+\psi)=E\,\eta(T)(t-T)_+$ for $|t|\le a$, T uniform on $[-a-1,a+1]$.

    $\eta=2(a+1)g''$, g the cosine on $[-a,a]$ and, with $s=T+a+1$, $c_0=\cos(\psi-\alpha a)$,
    $c_1=-\alpha\sin(\psi-\alpha a)$, a cubic that rises to it from nothing:
    $$g''=c_0(6-12s)+c_1(6s-2)\ (T<-a),\qquad -\alpha^2\cos(\alpha T+\psi)\ (|T|\le a),\qquad 0\ (T>a).$$
    Arguments broadcast; ``half`` is a.

    Source: bresler2020. Differs from the source: any taper will do there; this is the cubic.

    >>> import numpy as np
    >>> T, w = np.polynomial.legendre.leggauss(60)
    >>> T, w = torch.tensor(np.concatenate([T / 2 - 1.5, (T + 1) * 0.65 - 1])), torch.tensor(np.concatenate([w / 2, w * 0.65]))
    >>> eta = cosine_density(T, torch.tensor(3.0), torch.tensor(0.4))
    >>> abs(float((w * eta * (0.3 - T)).sum()) / 4 - math.cos(3 * 0.3 + 0.4)) < 1e-6
    True
    """
    positive(half=half)
    start = phase - frequency * half
    value, slope = torch.cos(start), -frequency * torch.sin(start)
    s = t + half + 1
    rise = value * (6 - 12 * s) + slope * (6 * s - 2)
    wave = -(frequency**2) * torch.cos(frequency * t + phase)
    second = torch.where(t < -half, rise, torch.where(t > half, torch.zeros_like(wave), wave))
    outside = t.abs() > half + 1  # so that NaN stays NaN
    return 2 * (half + 1) * torch.where(outside, torch.zeros_like(second), second)


def smoothed_cosine_density(
    t: Tensor, frequency: Tensor, phase: Tensor, *, order: int, smoothing_width: float = 1.0
) -> Tensor:
    r"""$\eta$ for SReLU units: $\cos(\alpha t+\psi)=E\,\eta(T)\,\mathrm{SReLU}_k(t-T)$ for $|t|\le1$, T uniform on $\pm(2+w)$.

    The density of the ReLU, made wider by w, over $\hat B_k(\alpha)$, for smoothing multiplies a cosine by it.

    Source: bresler2020.
    """
    damping = smoothing_transform(frequency, order, smoothing_width=smoothing_width)
    return cosine_density(t, frequency, phase, half=1 + smoothing_width) / damping


def separation(x: Tensor) -> float:
    r"""$\theta=\min_{j\ne k}|x_j-x_k|$; infinite for one point.

    >>> separation(torch.eye(3, dtype=torch.float64)) == 2**0.5
    True
    """
    x = as_tensor(x)
    finite_values(x=x)
    least, block = math.inf, max(1, 2**22 // max(len(x), 1))
    for start in range(0, len(x), block):
        rows = x[start : start + block]
        distances = torch.cdist(rows, x, compute_mode="donot_use_mm_for_euclid_dist")
        distances[torch.arange(len(rows)), torch.arange(start, start + len(rows))] = math.inf
        least = min(least, float(distances.min()))
    return least


def dual_scale(samples: int, theta: float, *, margin: float = 1.0) -> float:
    r"""$\sigma=\sqrt{2c\log n}/\theta$, at which points $\theta$ apart have $K_{jk}\le n^{-c}$; ``margin`` is c.

    Source: bresler2020.

    >>> dual_scale(round(math.exp(2)), 1.0, margin=2.0) == math.sqrt(4 * math.log(7))
    True
    """
    at_least(1, samples=samples)
    not_negative(margin=margin)
    _check_separation(theta)
    return math.sqrt(2 * margin * math.log(max(samples, 2))) / min(theta, 2.0)


def dual_kernel(x: Tensor, *, scale: float) -> Tensor:
    r"""$K=e^{-\sigma^2|x-x'|^2/2}$, through which Gaussian frequencies give labels back.

    For $F(\xi)=\sum_jy_je^{i\xi\cdot x_j}$ and $\xi\sim N(0,\sigma^2I)$, $E\,F(\xi)e^{-i\xi\cdot x_j}=(Ky)_j$.

    Source: rahimi2007; bresler2020.
    """
    positive(scale=scale)
    distances = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.exp(-0.5 * scale**2 * distances**2)


@dataclass(frozen=True)
class Contraction:
    """What one group of N units leaves of the squared residual: ``bias_share + noise_share / N``, as shares of it."""

    bias_share: float
    noise_share: float
    noise_share_stderr: float

    def factor(self, units: int) -> float:
        """The expected share that one group of so many units leaves; above 1 the scheme diverges."""
        return self.bias_share + self.noise_share / units

    @property
    def threshold(self) -> float:
        """The width of a group from which on the literal scheme contracts."""
        return self.noise_share / (1 - self.bias_share) if self.bias_share < 1 else math.inf


def corrective_contraction(
    x: Tensor, y: Tensor, *, scale: float, generator: torch.Generator, draws: int = 4000
) -> Contraction:
    r"""$\frac{E|y-\hat y|^2}{|y|^2}=\frac{|(I-K)y|^2}{|y|^2}+\frac1{N_0}\frac{E\,|F|^2\eta^2\sum_j(t_j-T)_+^2-|Ky|^2}{|y|^2}$.

    $t_j=\xi\cdot x_j/\alpha$, $\alpha=\max_j|\xi\cdot x_j|$. The mean over T is exact; that over $\xi$ is of ``draws``
    frequencies, its error in ``noise_share_stderr``.

    Source: bresler2020, Theorem 1. Differs from the source: exact, with its constant, where a rate is given there.
    """
    positive(scale=scale)
    if draws < 2 or not bool(x.any()) or not bool(y.any()):
        raise InputError(
            f"expected inputs and targets that are not all 0 and at least 2 draws, got {draws} draws or zeros"
        )
    smooth = dual_kernel(x, scale=scale) @ y
    xi = scale * torch.randn(draws, x.shape[1], generator=generator, dtype=x.dtype, device=generator.device)
    angles = xi.to(x.device) @ x.T  # (draws, n)
    transform = torch.complex(torch.cos(angles) @ y, torch.sin(angles) @ y)
    alpha = angles.abs().amax(1, keepdim=True)
    moments = transform.abs() ** 2 * _unit_moment(angles / alpha, alpha, -transform.angle()[:, None]).sum(1)
    energy = float(y.square().sum())
    spread = float(moments.std()) / math.sqrt(draws)
    return Contraction(
        bias_share=float((y - smooth).square().sum()) / energy,
        noise_share=(float(moments.mean()) - float(smooth.square().sum())) / energy,
        noise_share_stderr=spread / energy,
    )


def _unit_moment(t: Tensor, alpha: Tensor, phase: Tensor) -> Tensor:
    r"""$E\,\eta(T)^2(t-T)_+^2=4\int g''^2(t-T)_+^2dT$ for $|t|\le1$, in closed form."""
    value, slope = torch.cos(phase - alpha), -alpha * torch.sin(phase - alpha)
    rise = torch.zeros_like(t)
    for node, weight in ((-math.sqrt(0.6), 5 / 18), (0.0, 8 / 18), (math.sqrt(0.6), 5 / 18)):  # exact to degree five
        s = 0.5 + 0.5 * node
        rise = rise + weight * (value * (6 - 12 * s) + slope * (6 * s - 2)) ** 2 * (t + 2 - s) ** 2
    twice, length = 2 * alpha, t + 1
    upper, lower = 2 * phase - twice, twice * t + 2 * phase  # the angles at T = -1 and at T = t
    wave = (
        -(length**2) * torch.sin(upper) / twice
        + 2 * length * torch.cos(upper) / twice**2
        + 2 * (torch.sin(upper) - torch.sin(lower)) / twice**3
    )
    return 4 * (rise + alpha**4 * (length**3 / 6 + wave / 2))


def memorization_bounds(samples: int, dimension: int, theta: float) -> dict[str, float]:
    r"""Units that published theorems ask for to memorize n points of dimension d, $\theta$ apart, without constants and logs.

    For comparison only: assumptions differ (random data, gradient descent, several layers), and no constant is known.

    Source: allenzhu2019; du2019; ji2020; oymak2020; song2019; daniely2019; kawaguchi2019; bresler2020.

    >>> round(memorization_bounds(100, 10, 0.5)["Bresler and Nagaraj 2020: n / theta^4"])
    1600
    """
    at_least(1, samples=samples, dimension=dimension)
    _check_separation(theta)
    n, d = float(samples), float(dimension)
    return {
        "Allen-Zhu, Li, Song 2019: n^24 d / theta^8": n**24 * d / theta**8,
        "Ji and Telgarsky 2020, at worst: n^24 / theta^8": n**24 / theta**8,
        "Du and others 2019: n^6": n**6,
        "Song and Yang 2019: n^4": n**4,
        "Oymak and Soltanolkotabi 2020, d <= n <= c d^2: n^2 / d": n**2 / d,
        "Daniely 2019, n = d^c: n / d": n / d,
        "Kawaguchi and Huang 2019: n": n,
        "Bresler and Nagaraj 2020: n / theta^4": n / theta**4,
    }


def polynomial_units(
    dimension: int,
    degree: int,
    *,
    order: float,
    error: float = 1.0,
    failure_probability: float = 1.0,
    constant: float = 1.0,
) -> float:
    r"""$N=\bigl(C\,d^{q(a+1)}/(\epsilon\delta)\bigr)^{1/a}$ random features learn a polynomial of degree q; ``order`` is a.

    $d^{2q}/(\epsilon\delta)$ for $a=1$, $d^q$ as a grows: two statements of one bound.

    Source: bresler2020. Differs from the source: C(a, q) is not known; it grows with a.

    >>> round(polynomial_units(10, 2, order=1, error=0.1)), round(polynomial_units(10, 2, order=100, error=0.1))
    (100000, 107)
    """
    at_least(1, dimension=dimension, degree=degree)
    positive(order=order, error=error, failure_probability=failure_probability, constant=constant)
    logarithm = math.log(constant / (error * failure_probability)) + degree * (order + 1) * math.log(dimension)
    return math.exp(logarithm / order)


def _check_separation(theta: float) -> None:
    if not theta > 0:  # infinite for a single point
        raise InputError(f"expected points apart, a separation theta above 0, got {theta}; leave out repeated points")
