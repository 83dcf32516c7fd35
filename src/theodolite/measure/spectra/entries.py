"""The entries of a matrix apart from their places: how heavy their tails are, and the matrix by ranks alone."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from theodolite.core.checks import InputError, real_values
from theodolite.core.lazy_torch import array_of, is_tensor, torch
from theodolite.core.randomness import numpy_random
from theodolite.measure.spectra.eigenvalues import gram_eigenvalues

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

MOST_ENTRIES = 1 << 24
"""Entries that are ranked; of a larger matrix, rows drawn at random."""

BLOCK, LARGE = 1 << 15, 1 << 22
"""Entries in double precision at a time: on a processor such as stay in its cache, on a device many."""

FEW_TO_MULTIPLY = 1 << 20
"""Entries whose products are summed in float32 at most."""

FEW_TO_SORT, BITS = 1 << 16, 18
SCORES = 1 << 20
"""Entries up to which ranks are taken by sorting; of more they are counted in cells of so many leading bits; and how many
ranks are told apart."""


def entry_kurtosis(matrix: Tensor | NDArray[Any]) -> float:
    r"""$\overline{(w-\bar w)^4}/\overline{(w-\bar w)^2}^2$ of the entries: 3 for Gaussian ones, 1.8 for uniform ones.

    NaN where all entries are alike.

    >>> import torch
    >>> entry_kurtosis(torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))
    1.0
    """
    real_values(matrix=matrix)
    if is_tensor(matrix) and matrix.device.type not in ("cpu", "mps"):
        return _kurtosis_on_device(matrix.detach().flatten())
    flat = array_of(matrix).reshape(-1)
    kurtosis = _kurtosis_at_once(flat) if flat.dtype.itemsize < 8 else None  # powers of these are numbers of float64
    return _kurtosis_about_mean(flat) if kurtosis is None else kurtosis


def _kurtosis_at_once(flat: NDArray[Any]) -> float | None:
    """From sums of powers, each entry read once; None where the mean is so far from zero that they would cancel."""
    first = second = third = fourth = 0.0
    for at in range(0, flat.size, BLOCK):
        values = flat[at : at + BLOCK].astype(np.float64)
        squares = values * values
        first, second = first + float(values.sum()), second + float(squares.sum())
        third, fourth = third + float(values @ squares), fourth + float(squares @ squares)
    mean = first / max(flat.size, 1)
    spread = second - mean * first
    if spread <= 0.5 * second:
        return None
    return flat.size * (fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**3 * first) / spread**2


def _kurtosis_about_mean(flat: NDArray[Any]) -> float:
    size = float(max(flat.max(), -flat.min())) if flat.size else 0.0
    if not size:
        return math.nan
    starts = range(0, flat.size, BLOCK)
    mean = sum(float((flat[at : at + BLOCK].astype(np.float64) / size).sum()) for at in starts) / flat.size
    second = fourth = 0.0
    for at in starts:  # one in double precision at a time
        square = flat[at : at + BLOCK].astype(np.float64)
        square /= size
        square -= mean
        square *= square
        second, fourth = second + float(square.sum()), fourth + float(square @ square)
    return flat.size * fourth / second**2 if second else math.nan


def _kurtosis_on_device(flat: Tensor) -> float:
    size = float(flat.abs().max()) if flat.numel() else 0.0
    if not size:
        return math.nan
    blocks = torch.split(flat, LARGE)
    mean = float(torch.stack([(block.double() / size).sum() for block in blocks]).sum()) / flat.numel()
    sums = flat.new_zeros(2, dtype=torch.float64)
    for block in blocks:
        square = (block.double() / size - mean).square_()
        sums += torch.stack([square.sum(), square.square_().sum()])
    second, fourth = sums.tolist()
    return float(flat.numel() * fourth / second**2) if second else math.nan


@overload
def normal_scores(matrix: Tensor, *, generator: Any) -> Tensor: ...


@overload
def normal_scores(matrix: NDArray[Any], *, generator: Any) -> NDArray[np.float32]: ...


def normal_scores(matrix: Any, *, generator: Any) -> Any:
    r"""The matrix with each entry replaced by the normal quantile of its rank, $\Phi^{-1}((r-\frac12)/N)$, ties in random order.

    Entries that are independent and alike, whatever their law (heavy tails, zeros, few levels), become those of a
    Gaussian matrix: their ranks are a random permutation. What depends on places, such as planted directions or
    rows of unequal size, stays. Of more than 2^24 entries, rows drawn at random are taken. Of more than 2^16 entries those that
    share their leading 18 bits (in float32 one part in 512) count as ties. The ``generator`` is torch's or numpy's.
    Source: vanderwaerden1952.

    >>> import torch
    >>> normal_scores(torch.tensor([[5.0, 1e9], [-2.0, 0.0]]), generator=torch.Generator()).argsort().tolist()
    [[0, 1], [0, 1]]
    """
    real_values(matrix=matrix)
    random, wide = numpy_random(generator), matrix
    upright = wide.shape[0] >= wide.shape[1]
    wide = wide if upright else wide.T
    if math.prod(wide.shape) > MOST_ENTRIES:
        most = max(MOST_ENTRIES // wide.shape[1], wide.shape[1])
        wide = wide[np.sort(random.permutation(wide.shape[0])[:most])]
    wide = array_of(wide)
    if wide.size and np.isnan(wide.max()):
        raise InputError("expected entries that have a rank, got NaN among them; leave this matrix out")
    found = _scores(np.ascontiguousarray(wide).reshape(-1), random).reshape(wide.shape)
    found = found if upright else found.T
    return torch.from_numpy(found).double() if is_tensor(matrix) else found


def score_eigenvalues(scores: NDArray[Any]) -> NDArray[np.float64]:
    r"""The eigenvalues of $S^\top S$ of a matrix of scores, ascending.

    Scores are right to 1e-5. Where the longer side is at least twice the other, so that no eigenvalue of such a matrix is much
    smaller than the rest, products are taken in float32 and summed in float64: right to about 1e-6, in half the time of
    `gram_eigenvalues`, which is asked where they are not.

    >>> score_eigenvalues(np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], dtype=np.float32)).tolist()
    [4.0, 9.0]
    """
    tall = scores if scores.shape[0] >= scores.shape[1] else scores.T
    if tall.dtype != np.float32 or tall.shape[0] < 2 * tall.shape[1]:
        return gram_eigenvalues(scores)
    gram = np.zeros((tall.shape[1], tall.shape[1]))
    step = max(FEW_TO_MULTIPLY // max(tall.shape[1], 1), 256)
    for at in range(0, len(tall), step):
        gram += tall[at : at + step].T @ tall[at : at + step]
    return np.asarray(np.maximum(np.linalg.eigvalsh(gram), 0.0))


@lru_cache(maxsize=4)
def _quantiles(count: int) -> NDArray[np.float32]:
    """Normal quantiles at the middles of so many equal parts, right to 1e-5: between those of a fine grid of scores."""
    return np.interp((np.arange(count) + 0.5) / count, *_grid()).astype(np.float32)


@lru_cache(maxsize=1)
def _grid() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Normal shares and their scores."""
    scores = np.linspace(-6.0, 6.0, 4801)
    return np.array([math.erfc(-score / math.sqrt(2)) / 2 for score in scores]), scores


def _scores(flat: NDArray[Any], random: np.random.Generator) -> NDArray[np.float32]:
    """The normal quantile of the rank of each entry, ties in random order, ranks on a scale of at most 2^20 (`SCORES`)."""
    quantiles = _quantiles(min(flat.size, SCORES))
    if flat.size <= FEW_TO_SORT:
        return quantiles[_sorted_places(flat, random)]
    counts = _counts(flat)
    if counts[1 << (BITS - 1)]:  # a negative zero may be there: it is the other one
        flat = flat + flat.dtype.type(0)
        counts = _counts(flat)
    if not _tied(flat, counts):  # different numbers that lie close: their order counts
        return quantiles[_sorted_places(flat, random) * min(flat.size, SCORES) // flat.size]
    scale, used = min(flat.size, SCORES) / flat.size, _ascending(np.flatnonzero(counts))
    there = counts[used]
    # only the cells that are used are filled, and asked for
    start, width = np.empty((2, counts.size), dtype=np.float32)
    start[used] = (np.cumsum(there) - there) * scale  # up to 2^20, which float32 holds
    width[used] = there * scale
    found, cells = np.empty(flat.size, dtype=np.float32), np.empty(BLOCK, dtype=np.int64)
    room = np.empty(BLOCK, dtype=np.float32)
    for at in range(0, flat.size, BLOCK):  # in the processor's cache: what is kept whole is read and written once
        scores = found[at : at + BLOCK]
        places, of_cell = _cells(flat[at : at + BLOCK], cells[: len(scores)]), room[: len(scores)]
        random.random(dtype=np.float32, out=scores)
        scores *= width.take(places, out=of_cell, mode="clip")  # numpy copies what it gives out in any other mode
        scores += start.take(places, out=of_cell, mode="clip")
        places[:] = scores
        quantiles.take(places, out=scores, mode="clip")
    return found


def _sorted_places(flat: NDArray[Any], random: np.random.Generator) -> NDArray[np.int64]:
    shuffled = random.permutation(flat.size)
    places = np.empty(flat.size, dtype=np.int64)
    places[shuffled[flat[shuffled].argsort(kind="stable")]] = np.arange(flat.size)
    return places


def _cells(flat: NDArray[Any], into: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The leading bits of each number as they are: `_ascending` puts them into the order of the numbers."""
    kind = np.dtype(np.float64 if flat.dtype.itemsize == 8 else np.float32)
    raw: NDArray[Any] = flat.astype(kind, copy=False).view(f"u{kind.itemsize}")
    found = np.empty(flat.size, dtype=np.int64) if into is None else into
    np.right_shift(raw, 8 * kind.itemsize - BITS, out=found, dtype=raw.dtype, casting="unsafe")
    return found


def _ascending(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sorted cells in the order of their numbers: negative ones come first, and grow downwards in their bits."""
    negative = int(cells.searchsorted(1 << (BITS - 1)))
    return np.concatenate([cells[negative:][::-1], cells[:negative]])


def _counts(flat: NDArray[Any]) -> NDArray[np.int64]:
    """How many entries each cell has."""
    step = 8 * BLOCK
    counts = np.bincount(_cells(flat[:step]), minlength=1 << BITS)
    cells = np.empty(min(step, flat.size), dtype=np.int64)
    for at in range(step, flat.size, step):
        counts += np.bincount(_cells(flat[at : at + step], cells[: flat.size - at]), minlength=1 << BITS)
    return counts


def _tied(flat: NDArray[Any], counts: NDArray[np.int64]) -> bool:
    """Whether no cell has more than a few of the entries, or the one that has them holds a single number."""
    crowded = int(counts.argmax())
    if counts[crowded] <= flat.size // 64:
        return True
    members = flat[_cells(flat) == crowded]
    return not (members != members[0]).any()
