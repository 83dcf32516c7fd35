r"""The eigenvalues of a white sample covariance follow the Marchenko-Pastur law, of constant $1/(2\pi q)$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import gram_eigenvalues
from theodolite.theory.spectra import marchenko_pastur_cdf

COLUMNS = 60


def measure(ratio: float, x: float, *, generator: torch.Generator, spread: float = 0.0) -> float:
    n = round(COLUMNS / ratio)
    sizes = torch.exp(spread * torch.randn(n, 1, generator=generator, dtype=torch.float64))
    matrix = sizes * torch.randn(n, COLUMNS, generator=generator, dtype=torch.float64)
    return (gram_eigenvalues(matrix) / n <= x).double().mean().item()


law = Law(
    claim="The share of eigenvalues of a white sample covariance up to x is the Marchenko-Pastur distribution.",
    formula=r"\rho(x)=\frac{\sqrt{(\lambda_+-x)(x-\lambda_-)}}{2\pi q\,x},\quad\lambda_\pm=(1\pm\sqrt q)^2,\ q=p/n",
    assumes={"all entries of one variance": {"spread": 0.22}, "p/n fixed as n grows": None},
    source="marchenko1967",
    # Counts of eigenvalues are rigid: in one draw they err by about one of p, in the mean of 16 by a quarter; the law of
    # finite p lies within one eigenvalue of the limit. Two hold the limit, the mean and its three errors.
    predict=lambda ratio, x: Band.around(float(marchenko_pastur_cdf(x, ratio)), abs=2 / COLUMNS),
    measure=measure,
    cases=tuple({"ratio": ratio, "x": x} for ratio in (0.1, 0.5, 0.9) for x in (0.7, 1.0, 1.4)),
    repeats=16,
    quantity="share of eigenvalues up to x",
    along="x",
    erratum="Lecture notes print the density with the constant 1/(4 pi x), that is 1/(2 pi 2x): its mass is q/2, not 1.",
    refuted=lambda ratio, x: Band.around(ratio / 2 * float(marchenko_pastur_cdf(x, ratio)), abs=2 / COLUMNS),
)
