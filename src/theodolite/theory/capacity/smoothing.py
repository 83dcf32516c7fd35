"""SReLU: the ReLU averaged over a B-spline, as smooth as one likes and a ReLU still outside a neighborhood of zero."""

import math

import torch
from torch import Tensor

from theodolite.core.checks import InputError

HIGHEST = 20
"""The highest order whose alternating sum double precision still holds to six digits."""


def smoothed_relu(t: Tensor, order: int, *, smoothing_width: float = 1.0) -> Tensor:
    r"""$\mathrm{SReLU}_k(t)=E\,(t+U)_+$, U a sum of 2k uniform variables on $[-h/2,h/2]$, $h=w/k$; order 0 is ReLU.

    $$\frac{1}{(2k+1)!\,h^{2k}}\sum_{j=0}^{2k}(-1)^j\binom{2k}{j}(t+w-jh)_+^{2k+1}$$
    for $|t|\le w$, ReLU beyond, 2k times continuously differentiable and no more. Half the sum is taken, on the side
    of zero where its terms are few, and the identity $\mathrm{SReLU}(t)=t+\mathrm{SReLU}(-t)$ gives the other side.

    Source: bresler2020. Differs from the source: which smooth ReLU is meant is left open there; this one keeps what is used.

    >>> [round(float(smoothed_relu(torch.zeros((), dtype=torch.float64), k)), 4) for k in (0, 1, 2, 3)]
    [0.0, 0.1667, 0.1167, 0.0948]
    """
    step = _step(order, smoothing_width)
    if order == 0:
        return torch.relu(t)
    # In [-w, 0] the terms j <= k are enough and nothing large cancels; `where` keeps the slope 1/2 at zero for autograd
    near = torch.where(t > 0, -t, t).clamp(min=-smoothing_width)
    return torch.relu(t) + _truncated_powers((near + smoothing_width) / step, order, power=2 * order + 1) * step


def smoothed_relu_slope(t: Tensor, order: int, *, smoothing_width: float = 1.0) -> Tensor:
    r"""$\mathrm{SReLU}_k'(t)$: the share of the smoothing density to the left of t; a step for order 0.

    >>> smoothed_relu_slope(torch.tensor([-1.0, -0.5, 0.0, 1.0], dtype=torch.float64), 1).round(decimals=12).tolist()
    [0.0, 0.125, 0.5, 1.0]
    """
    step = _step(order, smoothing_width)
    if order == 0:
        return (t > 0).to(t.dtype)
    below = _truncated_powers((smoothing_width - t.abs().clamp(max=smoothing_width)) / step, order, power=2 * order)
    return torch.where(t > 0, 1 - below, below)


def smoothing_density(t: Tensor, order: int, *, smoothing_width: float = 1.0) -> Tensor:
    r"""$B_k(t)$, the density of the sum of 2k uniform variables on $[-h/2,h/2]$: the second derivative of SReLU.

    Source: deboor1978.

    >>> smoothing_density(torch.tensor([0.0, 0.25, 0.5, 1.0], dtype=torch.float64), 1).tolist()
    [1.0, 0.75, 0.5, 0.0]
    """
    step = _step(order, smoothing_width)
    if order == 0:
        raise InputError("expected an order of at least 1, got 0; the second derivative of ReLU is a point mass")
    near = -t.abs().clamp(max=smoothing_width)
    return _truncated_powers((near + smoothing_width) / step, order, power=2 * order - 1) / step


def smoothing_transform(frequency: Tensor, order: int, *, smoothing_width: float = 1.0) -> Tensor:
    r"""$\hat B_k(\alpha)=\bigl(\frac{\sin(\alpha h/2)}{\alpha h/2}\bigr)^{2k}$, by which SReLU damps a cosine.

    Refused from $\alpha h=2\pi$ on, its first zero: a cosine beyond cannot be got back.

    >>> float(smoothing_transform(torch.tensor(0.0), 2))
    1.0
    """
    step = _step(order, smoothing_width)
    if order == 0:
        return torch.ones_like(frequency)
    largest = float(frequency.abs().max()) if frequency.numel() else 0.0
    if largest * step >= 2 * math.pi:
        raise InputError(
            f"expected frequencies below 2 pi k / width = {2 * math.pi / step:.6g}, got {largest:.6g}; "
            "take a narrower width or a higher order"
        )
    return torch.sinc(frequency * (step / (2 * math.pi))) ** (2 * order)


def _truncated_powers(s: Tensor, order: int, *, power: int) -> Tensor:
    """The alternating sum at s = (t + w)/h, for s up to k."""
    wide = s if s.dtype == torch.float64 else s.double()  # terms are larger than their sum
    each = 1 / math.exp(math.lgamma(power + 1) / power)  # the root of power!, so that nothing large is formed
    terms = (
        (-1.0) ** j * float(math.comb(2 * order, j)) * (each * torch.relu(wide - j)) ** power
        if j
        else (each * wide) ** power
        for j in range(order + 1)
    )
    total: Tensor = sum(terms, torch.zeros_like(wide))
    return total.to(s.dtype)


def _step(order: int, width: float) -> float:
    if type(order) is not int or order < 0:
        raise InputError(f"expected an order among 0 (ReLU), 1, 2, ..., got {order!r}; pass a whole number")
    if order > HIGHEST:
        raise InputError(f"expected an order of at most {HIGHEST}, got {order}; beyond it the sum loses all its digits")
    if not (math.isfinite(width) and width > 0):
        raise InputError(f"expected a positive finite width, got {width}; pass 1.0, say")
    return width / max(order, 1)
