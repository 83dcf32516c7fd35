r"""ReLU makes the spectrum of Gaussian features flatter, provided they are centered again after it."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import feature_decay, gram_eigenvalues

DIMENSION, SAMPLES = 50, 2000


def predict(exponent: float) -> Band:
    # Cov relu(Y) = K/4 + positive terms in Hadamard powers of the correlations, whose spectra are flatter than K's.
    return Band(high=0.0)


def measure(exponent: float, *, generator: torch.Generator, centered: bool = True) -> float:
    turn = torch.linalg.qr(torch.randn(DIMENSION, DIMENSION, generator=generator, dtype=torch.float64))[0]
    scale = torch.arange(1, DIMENSION + 1, dtype=torch.float64) ** (-exponent / 2)
    before = (torch.randn(SAMPLES, DIMENSION, generator=generator, dtype=torch.float64) * scale) @ turn.T
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
    claim="ReLU lowers the rank exponent of centered Gaussian features.",
    formula=r"\mathrm{Cov}\,\mathrm{relu}(Y)=\tfrac14K+\sum_{k\ge2}c_k^2K^{\circ k}\quad(K\text{ of unit diagonal})",
    assumes={"features centered after the nonlinearity": {"centered": False}},
    source="cho2009",
    predict=predict,
    measure=measure,
    cases=tuple({"exponent": b} for b in (0.5, 1.0, 2.0)),
    quantity="change of the rank exponent",
    along="exponent",
)
