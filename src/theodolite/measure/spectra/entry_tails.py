"""The largest entries of a tensor beside the rest: a gap in the tail, and how much of a row they make up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

MOST_DETACHED, BODY = 8, 50
"""Entries that may stand apart, and the ranks below them that the tail's exponent is fitted on."""


@dataclass(frozen=True)
class EntryTail:
    r"""The widest gap among the largest magnitudes: ``count`` entries lie ``ratio`` times above the next one, ``body``.

    ``exponent`` is Hill's estimate of the tail below the gap (small: heavy, such as 3 for Student's t with three degrees of
    freedom), ``height`` the largest magnitude in robust standard deviations, ``row_share`` the largest share of a row's sum
    of squares that one of these entries has. ``places`` are their flat indices.
    """

    count: int
    ratio: float
    exponent: float
    body: float
    height: float
    row_share: float
    places: tuple[int, ...]
    entries: int


def entry_tail(tensor: Tensor) -> EntryTail | None:
    """The tail of a tensor's magnitudes (zeros left out); None where there are too few entries to speak of one.

    >>> x = torch.linspace(-1, 1, 1000).reshape(10, 100)
    >>> x[3, 4] = 50.0
    >>> found = entry_tail(x)
    >>> found.count, found.places, round(found.ratio)
    (1, (304,), 50)
    """
    rows = tensor.detach().reshape(len(tensor), -1).float()
    sizes = rows.abs().flatten()
    entries = int((sizes > 0).sum())
    body = min(BODY, entries // 10)
    if body < 10:
        return None
    top, where = sizes.topk(MOST_DETACHED + body + 1)
    logs = top.double().clamp(min=1e-300).log()
    best, widest = 1, -math.inf
    for count in range(1, MOST_DETACHED + 1):
        width = float(logs[count - 1] - logs[count]) * count * _hill(logs, count, body)
        if width > widest:
            best, widest = count, width
    few = sizes[:: max(1, len(sizes) // 100_000)]
    scale = float(few[few > 0].median()) / 0.6745
    shares = [float(top[i] ** 2 / rows[int(where[i]) // rows.shape[1]].square().sum()) for i in range(best)]
    return EntryTail(
        best,
        float((logs[best - 1] - logs[best]).exp()),
        _hill(logs, best, body),
        float(top[best]),
        float(top[0]) / scale if scale > 0 else math.inf,
        max(shares),
        tuple(int(i) for i in where[:best]),
        entries,
    )


def _hill(logs: Tensor, count: int, body: int) -> float:
    """Hill's exponent of the ranks behind the first ``count``."""
    spread = float(logs[count : count + body].mean() - logs[count + body])
    return min(1.0 / spread, 1e6) if spread > 0 else 1e6


def top_singular_value(matrix: Tensor, *, rounds: int = 30) -> float:
    """The largest singular value by power iteration from a fixed start, from below.

    >>> round(top_singular_value(torch.diag(torch.tensor([3.0, 1.0]))), 6)
    3.0
    """
    m = matrix.detach().reshape(len(matrix), -1).float()
    vector = torch.randn(m.shape[1], generator=torch.Generator().manual_seed(0)).to(m.device)
    for _ in range(rounds):
        vector = m.mT @ (m @ vector)
        vector = vector / vector.norm().clamp(min=1e-30)
    return float((m @ vector).norm())
