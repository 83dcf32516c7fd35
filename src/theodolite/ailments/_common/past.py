r"""What a model's past must have been, where nobody told it: whether it was trained.

A script that ends with a diagnosis passes the model as training left it. Whether steps were made is told by the optimizer's
state, by running statistics, or by the weights themselves. PyTorch draws those of Linear and Conv uniformly within one over
the root of the fan-in, $b(2k\,2^{-24}-1)$ with whole k: any step takes most of n entries off these numbers (of moved ones about
two in five lie on them by rounding, so that n moved entries pass for drawn ones with probability $0.4^n$). Other draws, and
those of another device, are known by nothing: such a model is taken to be fresh, and nothing is said of its run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

DRAWN = 0.2
"""How far the spread of entries may be from that of PyTorch's draw, as a share, for that draw to have been their start."""
OUTSIDE = 0.05
"""The share of entries outside the range of the draw beyond which they were drawn from something else; of a Gaussian 0.08 are."""
LEAST = 24
"""Entries of a layer from which on they are judged."""


def was_stepped(model: nn.Module) -> bool:
    """Whether weights or running statistics show that steps were made from PyTorch's own initialization."""
    for module in model.modules():
        tracked = getattr(module, "num_batches_tracked", None)
        if isinstance(tracked, Tensor) and int(tracked) > 0:
            return True
    return any(_left(entries, bound) for entries, bound in _draws(model))


def has_left(weight: Tensor) -> bool:
    """Whether the entries of a matrix are not those of PyTorch's draw; False where that cannot be told."""
    return weight.dtype == torch.float32 and _left(weight.detach().reshape(-1), _bound(weight))


def entries_over(weight: Tensor) -> int:
    """How many entries of a matrix are over the bound of PyTorch's draw."""
    return int((weight.detach().abs() > _bound(weight) * (1 + 1e-5)).sum())


def _bound(weight: Tensor) -> float:
    return 1.0 / math.sqrt(weight[0].numel())


def _draws(model: nn.Module) -> Iterator[tuple[Tensor, float]]:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d) and module.weight.dtype == torch.float32:
            own = [p for p in (module.weight, module.bias) if p is not None and p.requires_grad]
            if own:
                entries = torch.cat([p.detach().reshape(-1) for p in own])
                yield entries, _bound(module.weight)


def _left(entries: Tensor, bound: float) -> bool:
    """Whether entries that were drawn uniformly within a bound have since been moved."""
    if len(entries) < LEAST or entries.device.type != "cpu" or not bool(torch.isfinite(entries).all()):
        return False
    outside = float((entries.abs() > bound * (1 + 1e-5)).float().mean())
    if outside > OUTSIDE or abs(float(entries.std()) * math.sqrt(3.0) / bound - 1.0) > DRAWN:
        return False
    return bool(_as_drawn(entries, bound).float().mean() < 0.9)


def _as_drawn(entries: Tensor, bound: float) -> Tensor:
    """Which entries PyTorch's uniform draw within a bound can give."""
    half = torch.tensor(bound, dtype=torch.float32)
    nearest = ((entries.double() / half.double() + 1.0) * 2.0**23).round()
    found = torch.zeros_like(entries, dtype=torch.bool)
    for shift in (-1.0, 0.0, 1.0):
        share = (nearest + shift) * 2.0**-24
        found |= share.float() * (2 * half) - half == entries
        found |= (
            share * 2 * half.double() - half.double()
        ).float() == entries  # where sum and product are one operation
    return found
