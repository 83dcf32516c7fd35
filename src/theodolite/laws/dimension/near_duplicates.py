r"""Rows repeated with a little noise drag TwoNN down by a known amount: each twin adds the logarithm of the noise."""

import math

import torch
from scipy.special import digamma

from theodolite.construct.dimension import manifold
from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.dimension import twonn_fit

ROWS, DIMENSION = 1500, 5


def predict(share: float, noise: float) -> float:
    r"""One over the mean of $\ln r_2/r_1$ over three kinds of rows."""
    d, sphere = DIMENSION, 2 * math.pi ** (DIMENSION / 2 + 0.5) / math.gamma(DIMENSION / 2 + 0.5)
    ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1)
    nearest = (digamma(1) - math.log(ROWS * ball / sphere)) / d  # of ln r, the ball about a row holding Exp(1) others
    # of ln of a Gaussian difference's length
    twin = math.log(noise * 2**0.5) + (digamma((d + 1) / 2) + math.log(2)) / 2
    # Twins have each other and then a stranger; of the rest those next to a pair of twins see two equal distances
    alone = (1 - share) ** 2 / d
    return float((1 + share) / (2 * share * (nearest - twin) + alone))


def measure(share: float, noise: float, *, generator: torch.Generator, larger: float = 1.0) -> Estimate:
    x = manifold("sphere", ROWS, DIMENSION, generator=generator)
    again = torch.cat([x, x[: round(ROWS * share)]])
    jitter = larger * noise * torch.randn(again.shape, generator=generator, dtype=torch.float64)
    return twonn_fit(again + jitter, discard=0.0, rule="likelihood").estimate


law = Law(
    claim="A tenth of the rows repeated to nine digits makes TwoNN read a five-sphere as one-dimensional; exact repeats, which "
    "are removed first, do no harm.",
    formula=r"\hat d^{-1}=\frac{2s\,(E\ln r_1-E\ln r_{\mathrm{twin}})+(1-s)^2/d}{1+s}",
    assumes={"noise of the size stated": {"larger": 5.5}, "repeats that are not exact": None},
    source="facco2017",
    predict=predict,
    measure=measure,
    cases=({"share": 0.02, "noise": 1e-6}, {"share": 0.1, "noise": 1e-9}, {"share": 0.5, "noise": 1e-6}),
    # a sphere of radius 1 is bent over the nearest distance, 0.2: two per cent of ln r over the twins' ten; and a pair of
    # twins may be the nearest of another pair. Draws leave under a per cent
    tolerance=0.05,
    repeats=8,
    quantity="dimension by TwoNN",
    erratum="TwoNN is quoted as robust because it looks at two neighbors only; near-copies are just those two.",
    refuted=lambda **case: float(DIMENSION),
)
