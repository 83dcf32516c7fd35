r"""Exponentiated gradient learns one feature of d from about $\log d$ examples: its loss is of the order $\log d/k$."""

import torch
from torch import Tensor

from theodolite.construct.bias import sparse_problems
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import least_squares_weights, multiplicative_weights
from theodolite.theory.bias import multiplicative_loss

PROBLEMS = 16


def measure(d: int, k: int, *, generator: torch.Generator, update: str = "egu", total: float = 1.0) -> Tensor:
    x, y = sparse_problems("flipped", d, PROBLEMS, generator=generator)
    seen, labels = x[:, :k], y[:, :k]
    if update == "least squares":
        w = least_squares_weights(seen, labels)
    else:
        w = multiplicative_weights(seen, labels, update=update, lr=0.3, steps=400, initial_weight=total / d)
    return ((x @ w[..., None])[..., 0] - y).square().mean(1)


law = Law(
    claim="On one feature of a Hadamard matrix exponentiated gradient, run to convergence from equal small weights, has a loss "
    "below log d / k, where least squares still has 1 - k/d.",
    formula=r"E\,L_{\mathrm{EGU}}\le\frac{\log d}{k}\ll1-\frac{k}{d}",
    assumes={"multiplicative updates": {"update": "least squares"}, "equal weights of sum one": {"total": 4.8}},
    source="kivinen1997; warmuth2021",
    # The order with constant one. From equal weights 1/d the loss is at the bound for k near log2 d (0.71 +- 0.02 beside
    # 0.69 at k = 7, d = 128) and falls faster afterwards, so cases start at twice that.
    predict=lambda d, k: Band(high=multiplicative_loss(k, d)),
    measure=measure,
    cases=(*({"d": 32, "k": k} for k in (10, 14, 20)), *({"d": 64, "k": k} for k in (12, 16, 24, 40))),
    full=tuple({"d": 128, "k": k} for k in (14, 16, 24, 32, 64)),
    repeats=2,
    quantity="mean loss over all rows",
    along="k",
)
