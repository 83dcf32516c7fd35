r"""ReLU makes the spectrum of Gaussian features flatter, provided they are centered again after it: by how much is exact."""

import numpy as np
import torch

from theodolite.core.law import Law
from theodolite.measure.spectra import feature_decay, gram_eigenvalues
from theodolite.theory import Activation

DIMENSION, SAMPLES = 30, 12_000


def covariance(exponent: float) -> torch.Tensor:
    """A covariance in general position whose eigenvalues fall as this power of their rank."""
    generator = torch.Generator().manual_seed(3)
    turn = torch.linalg.qr(torch.randn(DIMENSION, DIMENSION, generator=generator, dtype=torch.float64))[0]
    return turn * torch.arange(1, DIMENSION + 1, dtype=torch.float64) ** -exponent @ turn.T


def predict(exponent: float) -> float:
    """By the arc-cosine kernel: the weighted line through log eigenvalues of Cov relu(Y), less the exponent itself."""
    relu, K = Activation("relu"), covariance(exponent).tolist()
    after = np.zeros((DIMENSION, DIMENSION))
    for i in range(DIMENSION):
        for j in range(i + 1):
            after[i, j] = after[j, i] = relu.covariance(K[i][i], K[j][j], K[i][j]) - relu.mean(K[i][i]) * relu.mean(
                K[j][j]
            )
    rank = np.arange(1, DIMENSION + 1)
    slope = np.polyfit(np.log(rank), np.log(np.linalg.eigvalsh(after)[::-1]), 1, w=rank**-0.5)[0]
    return float(-slope - exponent)


def measure(exponent: float, *, generator: torch.Generator, centered: bool = True) -> float:
    root = torch.linalg.cholesky(covariance(exponent))
    before = torch.randn(SAMPLES, DIMENSION, generator=generator, dtype=torch.float64) @ root.T
    after = torch.relu(before)
    if centered:
        return feature_decay(after, window=(1, DIMENSION)).alpha - feature_decay(before, window=(1, DIMENSION)).alpha
    slopes = []
    for features in (before, after):
        logs = gram_eigenvalues(features).log().flip(0)
        rank = torch.arange(1, DIMENSION + 1, dtype=torch.float64)
        place = rank.log() - (rank.log() / rank).sum() / (1 / rank).sum()
        slopes.append(-float((place / rank * logs).sum() / (place.square() / rank).sum()))
    return slopes[1] - slopes[0]


law = Law(
    claim="ReLU lowers the rank exponent of centered Gaussian features, by what the arc-cosine kernel of their covariance says.",
    formula=r"\mathrm{Cov}\,\mathrm{relu}(Y)=\tfrac14K+\sum_{k\ge2}c_k^2K^{\circ k}\quad(K\text{ of unit diagonal})",
    assumes={"features centered after the nonlinearity": {"centered": False}},
    source="cho2009",
    predict=predict,
    measure=measure,
    cases=tuple({"exponent": b} for b in (0.5, 1.0, 2.0)),
    tolerance=0.1,  # eigenvalues of 12,000 samples are spread by sqrt(30 / 12,000), 5 %, before and after alike
    repeats=6,
    quantity="change of the rank exponent",
    along="exponent",
)
