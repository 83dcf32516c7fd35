"""The largest entries of a tensor beside the rest: a gap in the tail, and how much of a row they make up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.late import array_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

MOST_DETACHED, BODY = 8, 50
"""Entries that may stand apart, and the ranks below them that the tail's exponent is fitted on."""

BLOCK = 1024
"""Entries of which the largest is looked for first."""


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


def entry_tail(tensor: Tensor | NDArray[Any]) -> EntryTail | None:
    """The tail of a tensor's magnitudes (zeros left out); None where there are too few entries to speak of one.

    >>> import torch
    >>> x = torch.linspace(-1, 1, 1000).reshape(10, 100)
    >>> x[3, 4] = 50.0
    >>> found = entry_tail(x)
    >>> found.count, found.places, round(found.ratio)
    (1, (304,), 50)
    """
    array = array_of(tensor)
    rows = array.reshape(len(array), -1).astype(np.float32, copy=False)
    sizes = np.abs(rows).reshape(-1)
    entries = int(np.count_nonzero(sizes))
    body = min(BODY, entries // 10)
    if body < 10:
        return None
    where = _largest(sizes, MOST_DETACHED + body + 1)
    top = sizes[where]
    logs = np.log(np.maximum(top.astype(np.float64), 1e-300))
    best, widest = 1, -math.inf
    for count in range(1, MOST_DETACHED + 1):
        width = float(logs[count - 1] - logs[count]) * count * _hill(logs, count, body)
        if width > widest:
            best, widest = count, width
    few = sizes[:: max(1, len(sizes) // 100_000)]
    few = np.sort(few[few > 0])
    scale = float(few[(len(few) - 1) // 2]) / 0.6745  # the lower of two in the middle
    shares = [float(top[i] ** 2 / np.square(rows[int(where[i]) // rows.shape[1]]).sum()) for i in range(best)]
    return EntryTail(
        best,
        float(np.exp(logs[best - 1] - logs[best])),
        _hill(logs, best, body),
        float(top[best]),
        float(top[0]) / scale if scale > 0 else math.inf,
        max(shares),
        tuple(int(i) for i in where[:best]),
        entries,
    )


def _largest(sizes: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The places of the ``count`` largest, the largest first: they lie in the blocks that have the largest of all."""
    if sizes.size > BLOCK * 4 * count:
        whole = sizes.size // BLOCK * BLOCK
        blocks = np.argpartition(sizes[:whole].reshape(-1, BLOCK).max(axis=1), -count)[-count:]
        places = (np.sort(blocks)[:, None] * BLOCK + np.arange(BLOCK)).reshape(-1)
        places = np.concatenate([places, np.arange(whole, sizes.size)])
    else:
        places = np.arange(sizes.size)
    kept = np.sort(np.argpartition(sizes[places], -count)[-count:])
    return places[kept[np.argsort(-sizes[places[kept]], kind="stable")]]


def _hill(logs: NDArray[np.float64], count: int, body: int) -> float:
    """Hill's exponent of the ranks behind the first ``count``."""
    spread = float(logs[count : count + body].mean() - logs[count + body])
    return min(1.0 / spread, 1e6) if spread > 0 else 1e6


def top_singular_value(matrix: Tensor | NDArray[Any], *, rounds: int = 30) -> float:
    """The largest singular value by power iteration from a fixed start, from below.

    >>> import torch
    >>> round(top_singular_value(torch.diag(torch.tensor([3.0, 1.0]))), 6)
    3.0
    """
    array = array_of(matrix)
    m = array.reshape(len(array), -1).astype(np.float32, copy=False)
    vector = np.random.default_rng(0).standard_normal(m.shape[1], dtype=np.float32)
    for _ in range(rounds):
        vector = m.T @ (m @ vector)
        vector /= max(float(np.linalg.norm(vector)), 1e-30)
    return float(np.linalg.norm(m @ vector))
