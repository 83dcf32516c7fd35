r"""A smaller density exponent of the weights gives steeper features: heavy tails upstream, fast decay downstream.

Of square X and W the rank exponents of XW obey $|a_{XW}-a_W|\le a_X$: by Horn the logarithms of its singular values are majorized
by the sums of theirs, a line fitted to them by least squares is steeper for what majorizes, and $W=X^{-1}(XW)$.
"""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.spectra import rank_exponent

SIDE, DATA = 60, 0.1


def basis(generator: torch.Generator) -> Tensor:
    return torch.as_tensor(torch.linalg.qr(torch.randn(SIDE, SIDE, generator=generator, dtype=torch.float64))[0])


def measure(density_exponent: float, *, generator: torch.Generator, data: float = DATA) -> float:
    """The least-squares rank exponent of XW, for weights whose spectrum is that of quantiles of this density exponent."""
    rank = torch.arange(1, SIDE + 1, dtype=torch.float64)
    values = rank ** (-0.5 / (density_exponent - 1))  # quantiles of a density with this exponent fall so with rank
    x = (basis(generator) * rank ** (-data / 2)) @ basis(generator).T
    logs = 2 * torch.linalg.svdvals(x @ (basis(generator) * values)).log()
    place = rank.log() - rank.log().mean()
    return -float((place * logs).sum() / place.square().sum())


law = Law(
    claim="Features behind weights of smaller density exponent decay faster with rank: their exponent is that of the weights, to "
    "within the data's own.",
    formula=r"\lambda_k(W^\top W)\propto k^{-1/(\alpha_W-1)}\ \Rightarrow\ \left|a_{XW}-\frac1{\alpha_W-1}\right|\le a_X",
    assumes={"data nearly white": {"data": 1.5}},
    source="martin2021; agrawal2022",
    predict=lambda density_exponent: Band.around(rank_exponent(density_exponent), abs=DATA),
    measure=measure,
    cases=tuple({"density_exponent": a} for a in (1.5, 2.0, 3.0)),
    full=({"density_exponent": 4.0},),
    quantity="rank exponent of the features",
    erratum="A post that joins weight and feature spectra concludes that features flatten as the weights' exponent falls; "
    "it used the rank exponent for one and quoted thresholds of the density exponent for the other. For the density "
    "exponent the direction is the opposite.",
    refuted=lambda density_exponent: Band.around(density_exponent, abs=DATA),
)
