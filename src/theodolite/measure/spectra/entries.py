"""The entries of a matrix apart from their places: how heavy their tails are, and the matrix by ranks alone."""

from __future__ import annotations

import math

import torch
from torch import Tensor

MOST_ENTRIES = 1 << 24
"""Entries that are ranked; of a larger matrix, rows drawn at random."""

BLOCK = 1 << 22


def entry_kurtosis(matrix: Tensor) -> float:
    r"""$\overline{(w-\bar w)^4}/\overline{(w-\bar w)^2}^2$ of the entries: 3 for Gaussian ones, 1.8 for uniform ones.

    NaN where all entries are alike.

    >>> entry_kurtosis(torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))
    1.0
    """
    flat = matrix.detach().flatten()
    size = float(flat.abs().max()) if flat.numel() else 0.0
    if not size:
        return math.nan
    blocks = torch.split(flat, BLOCK)
    mean = float(torch.stack([(block.double() / size).sum() for block in blocks]).sum()) / flat.numel()
    sums = flat.new_zeros(2, dtype=torch.float64)
    for block in blocks:  # one in double precision at a time
        square = (block.double() / size - mean).square_()
        sums += torch.stack([square.sum(), square.square_().sum()])
    second, fourth = sums.tolist()
    return flat.numel() * fourth / second**2 if second else math.nan


def normal_scores(matrix: Tensor, *, generator: torch.Generator) -> Tensor:
    r"""The matrix with each entry replaced by the normal quantile of its rank, $\Phi^{-1}((r-\frac12)/N)$, ties in random order.

    Entries that are independent and alike, whatever their law (heavy tails, zeros, few levels), become those of a
    Gaussian matrix: their ranks are a random permutation. What depends on places, such as planted directions or
    rows of unequal size, stays. Of more than 2^24 entries, rows drawn at random are taken. Source: vanderwaerden1952.

    >>> normal_scores(torch.tensor([[5.0, 1e9], [-2.0, 0.0]]), generator=torch.Generator()).argsort().tolist()
    [[0, 1], [0, 1]]
    """
    wide = matrix.detach().cpu()
    wide = wide if wide.shape[0] >= wide.shape[1] else wide.T
    if wide.numel() > MOST_ENTRIES:
        rows = torch.randperm(wide.shape[0], generator=generator)[: max(MOST_ENTRIES // wide.shape[1], wide.shape[1])]
        wide = wide[rows.sort().values]
    flat = wide.flatten().float() if wide.dtype.itemsize < 4 else wide.flatten()
    count = flat.numel()
    shuffled = torch.randperm(count, generator=generator)
    order = shuffled[flat[shuffled].argsort(stable=True)]
    scores = torch.empty(count, dtype=torch.float64)
    scores[order] = torch.special.ndtri((torch.arange(count, dtype=torch.float64) + 0.5) / count)
    ranked = scores.reshape(wide.shape)
    return ranked if matrix.shape[0] >= matrix.shape[1] else ranked.T
