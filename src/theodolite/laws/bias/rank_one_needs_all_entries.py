r"""Descent on the entries of a $d\times d$ matrix loses $1-k/d^2$ from k measurements, though the target has rank one.

Measured are products of Hadamard rows with a matrix on both sides, with random signs: all $d^2$ of them are orthogonal, so that
for learners that treat all entries alike the bound of the vector case holds with $d^2$ in place of d, whatever the rank. A
product of two factors is alike for turned rows and turned columns only, and the bound does not bind it.
"""

import torch
from torch import Tensor

from theodolite.construct.bias import sparse_problems
from theodolite.core.law import Law
from theodolite.theory.bias import hadamard_lower_bound

SIDE, PROBLEMS, LR, STEPS = 16, 8, 0.5, 400


def measure(measurements: int, *, generator: torch.Generator, factors: int = 1) -> list[float]:
    """The loss over all measurements, problem by problem. A Hadamard row of d^2 signs is a product of two rows of d."""
    x, y = sparse_problems("flipped", SIDE**2, PROBLEMS, generator=generator)
    seen, labels = x[:, :measurements] / SIDE, y[:, :measurements] / SIDE
    start = torch.randn(factors, PROBLEMS, SIDE, SIDE, generator=generator, dtype=x.dtype) * 1e-3
    own = torch.zeros_like(start) if factors == 1 else start
    for _ in range(STEPS):
        matrix = own[0] if factors == 1 else own[0] @ own[1]
        slope = _pulled(seen, (_seen_by(seen, matrix) - labels)).reshape_as(matrix)
        steps = slope[None] if factors == 1 else torch.stack([slope @ own[1].mT, own[0].mT @ slope])
        own = own - LR * steps
    matrix = own[0] if factors == 1 else own[0] @ own[1]
    return (_seen_by(x, matrix) - y).square().mean(1).tolist()


def _seen_by(rows: Tensor, matrix: Tensor) -> Tensor:
    return (rows @ matrix.flatten(1)[..., None])[..., 0]


def _pulled(rows: Tensor, rest: Tensor) -> Tensor:
    return (rest[:, None] @ rows)[:, 0]


law = Law(
    claim="Learners that treat all entries of a matrix alike cannot use that the target has rank one: from k of d^2 orthogonal "
    "measurements they lose at least 1 - k/d^2, as gradient descent on the entries does. Descent on two factors loses less.",
    formula=r"E\,\frac1{d^2}\sum_{i\le d^2}(\hat y_i-y_i)^2\ge1-\frac k{d^2}",
    assumes={"one matrix, not a product of two": {"factors": 2}},
    source="warmuth2021; gunasekar2017",
    predict=lambda measurements: hadamard_lower_bound(measurements, SIDE**2),
    measure=measure,
    cases=tuple({"measurements": count} for count in (64, 128, 192)),
    repeats=1,
    tolerance=1e-6,  # an identity: seen rows are learnt to 2^-400, unseen ones are orthogonal to every step
    quantity="mean loss over all measurements",
    along="measurements",
)
