r"""The mean powers of the eigenvalues of a white sample covariance are $1,\ 1+q,\ 1+3q+q^2,\dots$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import gram_eigenvalues
from theodolite.theory.spectra import marchenko_pastur_moment

ROWS = 240


def measure(order: int, ratio: float, *, generator: torch.Generator, shared: float = 0.0) -> float:
    p = round(ROWS * ratio)
    x = torch.randn(ROWS, p, generator=generator, dtype=torch.float64)
    common = torch.randn(ROWS, 1, generator=generator, dtype=torch.float64)
    x = (1 - shared) ** 0.5 * x + shared**0.5 * common
    return float((gram_eigenvalues(x) / ROWS).pow(order).mean())


law = Law(
    claim="The moments of the spectrum of white noise are those of the Marchenko-Pastur law.",
    formula=r"m_k=\sum_{r<k}\frac{q^r}{r+1}\binom kr\binom{k-1}r",
    assumes={"independent entries": {"shared": 0.027}, "p/n fixed as n grows": None},
    source="marchenko1967",
    # Real Gaussian matrices of n rows exceed the limit by 1/n (order 2) and (3 + 3q)/n (order 3), at most 0.7 %. A draw
    # of the k-th moment errs by about 2k sqrt(2/np), 48 of them by 0.4 % of k: twice three errors and the excess.
    predict=lambda order, ratio: Band.around(marchenko_pastur_moment(order, ratio), rel=0.025 * order),
    measure=measure,
    cases=tuple({"order": order, "ratio": ratio} for order in (1, 2, 3) for ratio in (0.2, 0.5)),
    repeats=48,
    quantity="moment of the spectrum",
)
