r"""On random signs least squares loses $(1-k/d)(1-E\,\mathrm{rank}/d)$ in mean, because the columns are exchangeable."""

import torch
from torch import Tensor

from theodolite.construct.bias import sparse_problems
from theodolite.core.law import Law
from theodolite.theory.bias import random_sign_least_squares_loss

SIDE, PROBLEMS, TARGETS = 64, 24, 8


def measure(k: int, *, generator: torch.Generator, louder: float = 1.0) -> Tensor:
    """``louder`` makes the relevant columns stand out: the columns are then not exchangeable."""
    x, _ = sparse_problems("signs", SIDE, PROBLEMS, generator=generator)
    y = x[..., :TARGETS].clone()  # each of several features is the target once; a draw is the mean over them
    x[..., :TARGETS] *= louder
    w = torch.linalg.pinv(x[:, :k]) @ y[:, :k]
    return torch.as_tensor((x @ w - y).square().mean((1, 2)))


law = Law(
    claim="For random signs the mean loss of least squares is that of Gaussian inputs; here it follows from exchangeable "
    "columns alone. That no invariant learner does better on signs is open.",
    formula=r"E\,\tfrac{1}{d}|X\hat w-Xe_1|^2=\left(1-\frac{k}{d}\right)\left(1-\frac{E\,\mathrm{rank}(X_k)}{d}\right)",
    assumes={"exchangeable features": {"louder": 1.25}},
    source="warmuth2021",
    # Square sign matrices of side 64 lose rank with probability below 1e-15 for k <= 48 rows: the rank is k.
    predict=lambda k: random_sign_least_squares_loss(k, SIDE),
    measure=measure,
    cases=tuple({"k": k} for k in (16, 32, 48)),
    full=({"k": 8}, {"k": 56}),
    tolerance=0.15,  # exact in mean; errors as in the law for Gaussian inputs
    repeats=4,
    quantity="mean square error",
    along="k",
)
