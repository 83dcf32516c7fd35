"""How often each class is taken for each other, and the one number that sums it up."""

import math
from typing import Any

import torch
from torch import Tensor

from theodolite.core.checks import InputError, real_values


def confusion_counts(labels: Tensor, predictions: Tensor, *, classes: int | None = None) -> Tensor:
    """How many samples of each class (rows) were given each label (columns), (C, C).

    >>> confusion_counts(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])).tolist()
    [[1, 1], [0, 1]]
    """
    y, said = (part.detach().cpu().long().reshape(-1) for part in (labels, predictions))
    if len(y) != len(said) or not len(y):
        raise InputError(f"expected as many predictions as labels, got {len(said)} and {len(y)}; pass both")
    count = int(torch.maximum(y.max(), said.max())) + 1 if classes is None else classes
    if int(torch.minimum(y.min(), said.min())) < 0 or int(torch.maximum(y.max(), said.max())) >= count:
        raise InputError(f"expected labels from 0 to {count - 1}, got others; count classes from 0")
    return torch.bincount(y * count + said, minlength=count * count).reshape(count, count)


def matthews_coefficient(counts: Any) -> float:
    r"""Matthews' coefficient from the counts of a confusion matrix: 1 where all is right, 0 as chance.

    $\frac{cs-\sum_kp_kt_k}{\sqrt{(s^2-\sum p_k^2)(s^2-\sum t_k^2)}}$, s samples of which c are right, $t_k$ of class k and
    $p_k$ said to be; with two classes the correlation of the two bits. It is 0 where one class alone occurs or is said.
    Source: matthews1975; gorodkin2004.

    >>> matthews_coefficient([[90, 10], [5, 45]])
    0.78...
    """
    real_values(counts=counts)
    table = torch.as_tensor(counts, dtype=torch.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2 or not bool((table >= 0).all()):
        raise InputError(
            f"expected a square table of counts, got shape {tuple(table.shape)}; pass confusion_counts(...)"
        )
    if not bool(table.isfinite().all()) or not float(table.sum()) > 0:
        raise InputError("expected counts of some samples, got none; pass a table with samples in it")
    table = table / table.sum()
    true, said = table.sum(1), table.sum(0)
    spread = (1 - float(true @ true)) * (1 - float(said @ said))
    return (float(table.trace()) - float(true @ said)) / math.sqrt(spread) if spread > 1e-300 else 0.0
