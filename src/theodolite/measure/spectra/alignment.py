r"""How alike are two sets of features of the same samples? Centered kernel alignment, with what chance gives.

$\mathrm{CKA}(K,L)=\mathrm{HSIC}(K,L)/\sqrt{\mathrm{HSIC}(K,K)\,\mathrm{HSIC}(L,L)}$ of the Gram matrices $K=XX^\top$ and
$L=YY^\top$, with the unbiased estimate of HSIC (Song et al. 2012): features that have nothing in common give 0 on average also
where there are more of them than samples, for which the plain estimate is far above 0.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core.checks import InputError, at_least, finite_values, real_values

LEAST = 4
"""Samples without which the unbiased estimate is not defined."""


@dataclass(frozen=True)
class Similarity:
    """The alignment, and the mean and standard deviation of the same where samples of one side are permuted.

    ``value`` is 1 where the features are the same up to a rotation and one scale, and 0 on average where they have nothing in
    common; below 0 by chance. ``p_value`` is the share of permutations with as much or more.
    """

    value: float
    null: float
    null_error: float
    p_value: float


def gram_matrix(features: Tensor) -> Tensor:
    """The Gram matrix of a row a sample, the diagonal left out, in float64."""
    real_values(features=features)
    rows = features.detach().flatten(1).double()
    rows = rows - rows.mean(0)
    gram = rows @ rows.T
    return gram.fill_diagonal_(0.0)


def feature_similarity(x: Tensor, y: Tensor, *, permutations: int = 99, seed: int = 0) -> Similarity:
    """The alignment of two sets of features, a row a sample, with its null by permutations of the samples.

    Source: kornblith2019; song2012.

    >>> x = torch.randn(200, 5, generator=torch.Generator().manual_seed(0))
    >>> turned = 3 * x @ torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(1)))[0]
    >>> round(feature_similarity(x, turned).value, 6)
    1.0
    """
    finite_values(x=x, y=y)
    at_least(1, permutations=permutations)
    if min(x.ndim, y.ndim) < 2 or len(x) != len(y) or len(x) < LEAST:
        raise InputError(
            f"expected features of the same {LEAST} samples or more, a row a sample, got shapes {tuple(x.shape)} and "
            f"{tuple(y.shape)}; pass one batch to both"
        )
    return gram_similarity(gram_matrix(x), gram_matrix(y), permutations=permutations, seed=seed)


def gram_similarity(gram: Tensor, other: Tensor, *, permutations: int = 99, seed: int = 0) -> Similarity:
    """The same of two Gram matrices as `gram_matrix` gives them."""
    at_least(1, permutations=permutations)
    if gram.shape != other.shape or gram.ndim != 2 or gram.shape[0] != gram.shape[1] or len(gram) < LEAST:
        raise InputError(
            f"expected two square matrices of {LEAST} samples or more, got shapes {tuple(gram.shape)} and {tuple(other.shape)}"
        )
    scale = (_dependence(gram, gram) * _dependence(other, other)).clamp_min(0).sqrt()
    if not scale > 0:  # features that do not vary
        return Similarity(float("nan"), 0.0, float("nan"), float("nan"))
    value = float(_dependence(gram, other) / scale)
    generator = torch.Generator().manual_seed(seed)
    drawn = []
    for _ in range(permutations):
        order = torch.randperm(len(other), generator=generator).to(other.device)
        drawn.append(float(_dependence(gram, other[order][:, order]) / scale))
    by_chance = torch.tensor(drawn, dtype=torch.float64)
    error = float(by_chance.std()) if permutations > 1 else float("nan")
    above = int((by_chance >= value).sum())
    return Similarity(value, float(by_chance.mean()), error, (1 + above) / (1 + permutations))


def _dependence(k: Tensor, l: Tensor) -> Tensor:  # noqa: E741  the letters of the formula
    """The unbiased estimate of HSIC times n(n - 3), of matrices without their diagonals."""
    n = len(k)
    sums, others = k.sum(0), l.sum(0)
    return (k * l).sum() + sums.sum() * others.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (sums @ others)
