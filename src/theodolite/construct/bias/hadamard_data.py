"""Data sets whose target is one of many features: Hadamard rows in four guises, random signs, and Gaussian numbers."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from theodolite.core.checks import InputError, one_of

HadamardKind = Literal["plain", "shifted", "flipped", "permuted", "signs", "gauss"]


@dataclass(frozen=True)
class SparseProblem:
    """All examples, (n, d), and labels, (n,); the first ``seen`` are for training. ``weight`` is the answer, (d,)."""

    x: Tensor
    y: Tensor
    weight: Tensor
    seen: int

    @property
    def train(self) -> tuple[Tensor, Tensor]:
        """What the learner may see."""
        return self.x[: self.seen], self.y[: self.seen]

    def loss(self, predictions: Tensor) -> Tensor:
        """The mean square over all examples of predictions (n,), or of several at once, (n, m)."""
        labels = self.y if predictions.ndim == 1 else self.y[:, None]
        return (predictions - labels).square().mean(0)


def sparse_problem(
    kind: HadamardKind,
    dimension: int,
    seen: int,
    *,
    generator: torch.Generator,
    target: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> SparseProblem:
    r"""d examples of d features, the label one of the features, in an order at random; k of them are for training.

    plain: rows of the Hadamard matrix H, label column ``target`` (one at random by default, never the constant one).
    shifted: (H + 1)/2 with labels of signs as before: features 0 and 1, of which $2x_i-1$ is the label; the answer's
    bias is -1. flipped: rows times random signs s, so that the constant column, the target by default, is as hard as any:
    labels s. permuted: plain with the columns in random order. signs, gauss: independent entries.

    >>> p = sparse_problem("flipped", 8, 3, generator=torch.Generator().manual_seed(0))
    >>> torch.equal(p.x @ p.weight, p.y), torch.equal(p.x @ p.x.T, 8 * torch.eye(8).double())
    (True, True)
    """
    one_of(get_args(HadamardKind), kind=kind)
    if not 0 < seen <= dimension:
        raise InputError(
            f"expected between 1 and {dimension} examples to train on, got {seen}; they are rows of a square"
        )
    x = _entries(kind, dimension, generator).to(dtype)
    if target is None:
        drawn = int(torch.randint(1, max(2, dimension), (1,), generator=generator)) % dimension
        target = 0 if kind in ("flipped", "signs", "gauss") else drawn
    x = x[torch.randperm(dimension, generator=generator)]
    if kind == "flipped":
        x = x * (2.0 * torch.randint(0, 2, (dimension, 1), generator=generator) - 1).to(dtype)
    if kind == "permuted":
        order = torch.randperm(dimension, generator=generator)
        x, target = x[:, order], int((order == target).nonzero())
    y = x[:, target].clone()
    weight = torch.zeros(dimension, dtype=dtype)
    weight[target] = 1.0
    return SparseProblem((x + 1) / 2, y, 2 * weight, seen) if kind == "shifted" else SparseProblem(x, y, weight, seen)


def sparse_problems(
    kind: HadamardKind, dimension: int, count: int, *, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The inputs (count, d, d) and labels (count, d) of several such problems, the rows in random order."""
    made = [sparse_problem(kind, dimension, dimension, generator=generator) for _ in range(count)]
    return torch.stack([problem.x for problem in made]), torch.stack([problem.y for problem in made])


def bit_patterns(bits: int) -> Tensor:
    """All rows of ``bits`` signs, (2^bits, bits)."""
    places = torch.arange(2**bits)[:, None] >> torch.arange(bits)
    return 1.0 - 2.0 * (places & 1).double()


def products_of_bits(bits: Tensor) -> Tensor:
    """All products of subsets of each row's signs, (n, b) to (n, 2^b): parities, written as signs."""
    features = torch.ones(len(bits), 1, dtype=bits.dtype)
    for place in range(bits.shape[1]):
        features = torch.cat([features, features * bits[:, place : place + 1]], 1)
    return features


def _entries(kind: HadamardKind, dimension: int, generator: torch.Generator) -> Tensor:
    if kind == "gauss":
        return torch.randn(dimension, dimension, generator=generator, dtype=torch.float64)
    if kind == "signs":
        return 2.0 * torch.randint(0, 2, (dimension, dimension), generator=generator).double() - 1
    if dimension & (dimension - 1):
        raise InputError(
            f"expected a power of two for a Hadamard matrix, got {dimension}; take {2 ** dimension.bit_length()}"
        )
    from scipy.linalg import hadamard

    return torch.from_numpy(np.asarray(hadamard(dimension), dtype=np.float64))
