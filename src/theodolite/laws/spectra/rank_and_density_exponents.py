r"""A spectrum that falls with rank as $k^{-b}$ has a density of exponent $1+1/b$: the two run opposite ways."""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import power_law
from theodolite.theory.spectra import density_exponent

COUNT = 2000


def predict(exponent: float) -> Band:
    # Exact quantiles: the mean of log(m/k) is 1 - log(2 pi m)/(2m), by Stirling, and the fit keeps nearly all of them.
    return Band.around(density_exponent(exponent), abs=2 / exponent * math.log(2 * math.pi * COUNT) / (2 * COUNT))


def measure(exponent: float, *, decay: str = "power") -> float:
    rank = torch.arange(1, COUNT + 1, dtype=torch.float64)
    values = rank**-exponent if decay == "power" else torch.exp(-exponent * rank / 200)
    return power_law(values).alpha


law = Law(
    claim="The rank exponent b of a spectrum and the exponent a of its density are bound by b = 1/(a - 1).",
    formula=r"\lambda_k\propto k^{-b}\iff\rho(\lambda)\propto\lambda^{-(1+1/b)}",
    assumes={"a power law in rank": {"decay": "exponential"}},
    source="clauset2009; martin2021",
    predict=predict,
    measure=measure,
    cases=tuple({"exponent": b} for b in (0.25, 1 / 3, 0.5, 2.0, 4.0)),
    quantity="density exponent",
    along="exponent",
    erratum="A post that joins weight and feature spectra reads the two exponents as one. They are equal only at the "
    "golden ratio; thresholds made for the density exponent (2 to 4) are 1/3 to 1 in rank, and the conclusion turns "
    "round: a smaller density exponent of the weights means steeper features.",
    refuted=lambda exponent: Band.around(exponent, rel=0.1),
)
