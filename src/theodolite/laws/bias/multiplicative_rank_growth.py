r"""After k examples the weights for all targets have rank k under least squares, but $2^{r}$ under multiplicative updates."""

import torch
from torch import Tensor

from theodolite.construct.bias import products_of_bits, sparse_problem
from theodolite.core.law import Law
from theodolite.measure.experiments import least_squares_weights, multiplicative_weights

SIDE = 64


def measure(update: str, bits: int, *, generator: torch.Generator, independent: bool = True) -> float:
    """Rows chosen so that ``bits`` of them are independent over the field of two elements."""
    if independent:
        x = _independent_rows(bits, generator)
    else:  # the last row is the product of two others, so that it is known before it is seen
        x = _independent_rows(bits - 1, generator)
        x = torch.cat([x, x[:1] * x[1:2]])
    labels = x.T  # every feature is a target once, (d, k)
    many = x.expand(SIDE, -1, -1)
    if update == "least squares":
        w = least_squares_weights(many, labels)
    else:
        w = multiplicative_weights(many, labels, update=update, lr=0.2, steps=12, initial_weight=1 / SIDE)
    values = torch.linalg.svdvals(w)
    return float((values > 1e-9 * values[0]).sum())


def _independent_rows(bits: int, generator: torch.Generator) -> Tensor:
    while True:
        x = sparse_problem("plain", SIDE, SIDE, generator=generator).x[:bits]
        if len(torch.unique(products_of_bits(x.T).T, dim=0)) == 2**bits:  # no product of rows is another: independent
            return x


law = Law(
    claim="Least squares spans one direction for each example. Multiplicative updates give every pattern of the seen examples "
    "a weight of its own: rank two to the number of examples that are independent as bits.",
    formula=r"\mathrm{rank}\,W_k^{\mathrm{LLS}}=k,\qquad\mathrm{rank}\,W_k^{\mathrm{EGU}}=2^{\mathrm{rank}_{2}(X_k)}",
    assumes={"examples independent as bits": {"independent": False}},
    source="warmuth2005; warmuth2021",
    predict=lambda update, bits: float(bits if update == "least squares" else 2**bits),
    measure=measure,
    cases=tuple({"update": u, "bits": b} for u in ("least squares", "egu", "spindly") for b in (2, 3, 4, 5)),
    repeats=2,
    quantity="rank of the weights for all targets",
    along="bits",
)
