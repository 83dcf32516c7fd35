r"""Condition numbers multiply at most, $\kappa(XW)\le\kappa(X)\kappa(W)$, unless the inner side is the longest."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import condition_number
from theodolite.theory.spectra import condition_number_bound, product_bound_applies

TILTED = (2, 3, 2)  # few samples of wider inputs: where the bound does not apply
ROUNDING = 1e-9


def predict(shape: tuple[int, int, int], kappa: float) -> Band:
    n, p, q = shape
    if not product_bound_applies(p, min(n, p), min(p, q)):
        # a projection of a plane tilted by arccos 1/kappa: beyond 1 times 1
        return Band.around(math.log10(kappa), abs=ROUNDING)
    return unconditional(shape, kappa)


def unconditional(shape: tuple[int, int, int], kappa: float) -> Band:
    own = 1.0 if shape == TILTED else kappa
    return Band(high=math.log10(condition_number_bound(own, own)) + ROUNDING)


def _tilted(kappa: float, generator: torch.Generator) -> Tensor:
    """Two of three coordinates of two orthonormal columns; both factors have condition number 1."""
    turn = torch.linalg.qr(torch.randn(2, 2, generator=generator, dtype=torch.float64))[0]
    plane = torch.tensor([[1.0, 0.0], [0.0, 1 / kappa], [0.0, math.sqrt(1 - kappa**-2)]], dtype=torch.float64)
    keep = torch.linalg.qr(torch.randn(2, 2, generator=generator, dtype=torch.float64))[0] @ torch.eye(
        2, 3, dtype=torch.float64
    )
    return keep @ (plane @ turn)


def with_condition(rows: int, columns: int, kappa: float, generator: torch.Generator) -> Tensor:
    k = min(rows, columns)
    left = torch.linalg.qr(torch.randn(rows, k, generator=generator, dtype=torch.float64))[0]
    right = torch.linalg.qr(torch.randn(columns, k, generator=generator, dtype=torch.float64))[0]
    return (left * torch.logspace(0, -1, k, kappa, dtype=torch.float64)) @ right.T


def measure(
    shape: tuple[int, int, int], kappa: float, *, generator: torch.Generator, few_samples: bool = False
) -> float:
    if shape == TILTED:
        return math.log10(condition_number(_tilted(kappa, generator)))
    n, p, q = (12, 40, 10) if few_samples else shape
    products = (with_condition(n, p, kappa, generator) @ with_condition(p, q, kappa, generator) for _ in range(8))
    return math.log10(max(condition_number(product) for product in products))


law = Law(
    claim="The condition number of a product is at most the product of the condition numbers.",
    formula=r"\kappa(XW)\le\kappa(X)\kappa(W),\quad X:n\times p,\ W:p\times q,\ \text{not both }p>n\text{ and }p>q",
    assumes={"full rank, and the inner side not the longest": {"few_samples": True}},
    source="horn2013",
    predict=predict,
    measure=measure,
    cases=tuple({"shape": s, "kappa": 1.5} for s in ((60, 20, 30), (60, 30, 20), (20, 30, 60), TILTED)),
    quantity="log10 of the condition number of the product",
    erratum="Stated for any two compatible matrices; it fails for few samples of wide inputs, n < p > q.",
    refuted=unconditional,
)
