"""Kernel ridge by preconditioned conjugate gradients gives the weights that the equations of the minimum give."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.kernels import ridge_by_conjugate_gradients

SAMPLES = 60


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(SAMPLES, 3, generator=generator, dtype=torch.float64)
    y = x[:, 0] * x[:, 1] + torch.randn(SAMPLES, generator=generator, dtype=torch.float64)
    return torch.exp(-0.5 * torch.cdist(x, x).square()), y


def predict(rank: int, ridge: float) -> float:
    K, y = data()
    found = ridge_by_conjugate_gradients(K, y, ridge=ridge, column=lambda i: K[:, i], rank=rank, tolerance=1e-10)
    return float(found.weights @ y)


def measure(rank: int, ridge: float, *, moved: float = 0.0) -> float:
    """Descent on the loss itself with its own best step in the eigenbasis: each direction has its minimum."""
    K, y = data()
    values, vectors = torch.linalg.eigh(K)
    along = vectors.T @ y
    return float((along.square() / (values + ridge * (1 + moved))).sum())


law = Law(
    claim="Products with the kernel and a factor of low rank are enough to find the minimum, whatever the rank of the factor.",
    formula=r"y^\top a,\quad(K+\lambda I)\,a=y",
    assumes={"the ridge is the one supposed": {"moved": 4e-07}},
    source="rasmussen2006; harbrecht2012",
    predict=predict,
    measure=measure,
    cases=({"rank": 5, "ridge": 0.1}, {"rank": 30, "ridge": 0.1}, {"rank": 30, "ridge": 1e-3}),
    tolerance=1e-7,  # residuals of 1e-10, times a condition of at most 1e4 and the targets' size
    quantity="product of targets and weights",
)
