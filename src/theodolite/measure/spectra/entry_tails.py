"""The largest entries of a tensor beside the rest: a gap in the tail, and how much of a row they make up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.checks import InputError, at_least
from theodolite.core.lazy_torch import array_of, is_elsewhere, torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

MOST_DETACHED, BODY = 8, 50
"""Entries that may stand apart, and the ranks below them that the tail's exponent is fitted on."""

MODERATE = 1e-3
"""Entries whose largest lies between this and its inverse have products and norms that single precision holds."""

LARGEST_POWER = 700.0  # exp of more is not a number of double precision

BLOCK, FEW = 1024, 100_000
"""Entries of which the largest is looked for first, at most, and by which the middle one is told."""


@dataclass(frozen=True)
class EntryTail:
    r"""The widest gap among the largest magnitudes: ``count`` entries lie ``ratio`` times above the next one, ``body``.

    ``exponent`` is Hill's estimate of the tail below the gap (small: heavy, such as 3 for Student's t with three degrees of
    freedom), ``height`` the largest magnitude in standard deviations of the others (roots of their mean square: with its own
    among them no entry of n could lie more than $\sqrt n$ above), ``row_share`` the largest share of a row's sum of squares that
    one of these entries has. ``places`` are their flat indices.
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

    Entries that are NaN or infinite are refused: they have no rank among the others.

    >>> import torch
    >>> x = torch.linspace(-1, 1, 1000).reshape(10, 100)
    >>> x[3, 4] = 50.0
    >>> found = entry_tail(x)
    >>> found.count, found.places, round(found.ratio)
    (1, (304,), 50)
    """
    if 0 in tensor.shape:
        return None
    sizes = _on_device(tensor) if is_elsewhere(tensor) else _in_memory(array_of(tensor))
    entries = sizes.entries
    body = min(BODY, entries // 10)
    if body < 10 or not sizes.few.any():
        return None
    top, where = sizes.largest(MOST_DETACHED + body + 1)
    if not np.isfinite(top).all():  # what is not finite counts among the largest
        raise InputError("expected finite entries, got NaN or infinity among them; leave this tensor out")
    logs = np.log(np.maximum(top.astype(np.float64), 1e-300))
    best, widest = 1, -math.inf
    for count in range(1, MOST_DETACHED + 1):
        width = float(logs[count - 1] - logs[count]) * count * _hill(logs, count, body)
        if width > widest:
            best, widest = count, width
    shares = [1.0 / sizes.row_square(int(where[i]), float(top[i])) for i in range(best)]
    return EntryTail(
        best,
        float(np.exp(min(logs[best - 1] - logs[best], LARGEST_POWER))),
        _hill(logs, best, body),
        float(top[best]),
        _height(sizes, top, best),
        max(shares),
        tuple(int(i) for i in where[:best]),
        entries,
    )


def _height(sizes: _Sizes, top: NDArray[Any], count: int) -> float:
    """The largest in roots of the mean square of those behind the first ``count``, told by those looked at."""
    rest = sizes.few[sizes.few <= top[count]].astype(np.float64) / top[0]
    below = float(np.square(rest).mean()) if rest.size else 0.0
    return 1.0 / math.sqrt(below) if below > 0 else math.inf


@dataclass(frozen=True)
class _Sizes:
    """Magnitudes of the entries: how many are not zero, some of them, the largest with their places.

    ``row_square`` is the sum of squares of the row of a place, in units of the size given.
    """

    size: int
    entries: int
    few: NDArray[Any]
    largest: Callable[[int], tuple[NDArray[Any], NDArray[np.int64]]]
    row_square: Callable[[int, float], float]


def _rows(tensor: Any) -> int:
    """How many rows: where each would hold one entry, which makes up all of it whatever its size, they are one."""
    return 1 if math.prod(tensor.shape[1:]) == 1 else len(tensor)


def _in_memory(array: NDArray[Any]) -> _Sizes:
    if array.dtype.kind == "c":
        array = np.abs(array)
    rows = array.reshape(_rows(array), -1)
    rows = rows.astype(np.float32 if rows.dtype.itemsize < 8 else np.float64, copy=False)
    flat = rows.reshape(-1)

    def largest(count: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        where = _largest(flat, count)
        return np.abs(flat[where]), where

    return _Sizes(
        flat.size,
        int(np.count_nonzero(flat)),
        np.abs(flat[:: max(1, flat.size // FEW)]),
        largest,
        lambda place, unit: float(np.square(rows[place // rows.shape[1]] / unit).sum()),
    )


def _on_device(tensor: Any) -> _Sizes:
    rows = tensor.detach().reshape(_rows(tensor), -1)
    sizes = rows.abs().reshape(-1)

    def largest(count: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        top, where = sizes.topk(count)
        return array_of(top), where.cpu().numpy()

    few = array_of(sizes[:: max(1, sizes.numel() // FEW)])
    return _Sizes(
        sizes.numel(),
        int(sizes.count_nonzero()),
        few,
        largest,
        lambda place, unit: float((rows[place // rows.shape[1]].abs().double() / unit).square().sum()),
    )


def _largest(flat: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The places of the ``count`` largest sizes, the largest first: none is below the least of so many blocks' largest.

    NaN is taken for the largest, as numpy's order has it.
    """
    block = min(BLOCK, flat.size // (4 * count))
    if block <= 1:
        places = np.arange(flat.size)
    else:
        whole = flat.size // block * block
        blocks = flat[:whole].reshape(-1, block)
        tops = np.maximum(blocks.max(axis=1), -blocks.min(axis=1))
        least = np.partition(tops, -count)[-count]
        begins = np.flatnonzero(~(tops < least))[:, None] * block
        places = np.concatenate([(begins + np.arange(block)).reshape(-1), np.arange(whole, flat.size)])
        places = places[~(np.abs(flat[places]) < least)]
    sizes = np.abs(flat[places])
    kept = np.sort(np.argpartition(sizes, -count)[-count:])
    return places[kept[np.argsort(-sizes[kept], kind="stable")]]


def _hill(logs: NDArray[np.float64], count: int, body: int) -> float:
    """Hill's exponent of the ranks behind the first ``count``."""
    spread = float(logs[count : count + body].mean() - logs[count + body])
    return min(1.0 / spread, 1e6) if spread > 0 else 1e6


def top_singular_value(matrix: Tensor | NDArray[Any], *, rounds: int = 30) -> float:
    """The largest singular value by power iteration from a fixed start, from below; NaN or infinite where an entry is.

    Of numbers far from 1 the largest is taken out first, so that no norm in single precision over- or underflows.

    >>> import torch
    >>> round(top_singular_value(torch.diag(torch.tensor([3.0, 1.0]))), 6)
    3.0
    """
    at_least(0, rounds=rounds)
    if 0 in matrix.shape:
        return 0.0
    if is_elsewhere(matrix):
        return _top_on_device(matrix, rounds)
    array = array_of(matrix)
    m = array.reshape(len(array), -1)
    unit = float(np.abs(m).max(initial=0.0))
    if not 0.0 < unit < math.inf:
        return unit
    unit = 1.0 if MODERATE < unit < 1 / MODERATE else unit
    m = (m if unit == 1.0 else m.astype(np.result_type(m, np.float32)) / unit).astype(
        np.complex64 if m.dtype.kind == "c" else np.float32, copy=False
    )
    vector: NDArray[Any] = np.random.default_rng(0).standard_normal(m.shape[1], dtype=np.float32)
    for _ in range(rounds):
        vector = m.T.conj() @ (m @ vector)
        vector /= max(float(np.linalg.norm(vector)), 1e-30)
    return unit * float(np.linalg.norm(m @ vector))


def _top_on_device(matrix: Any, rounds: int) -> float:
    m = matrix.detach().reshape(len(matrix), -1)
    unit = float(m.abs().max()) if m.numel() else 0.0
    if not 0.0 < unit < math.inf:
        return unit
    unit = 1.0 if MODERATE < unit < 1 / MODERATE else unit
    m = m if unit == 1.0 else (m if m.dtype.itemsize >= 4 else m.float()) / unit
    m = m.to(torch.complex64 if m.is_complex() else torch.float32)
    vector = m.new_tensor(np.random.default_rng(0).standard_normal(m.shape[1], dtype=np.float32))
    for _ in range(rounds):
        vector = m.mH @ (m @ vector)
        vector = vector / vector.norm().clamp(min=1e-30)
    return unit * float((m @ vector).norm())
