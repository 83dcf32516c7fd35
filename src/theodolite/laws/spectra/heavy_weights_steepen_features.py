r"""A smaller density exponent of the weights gives steeper features: heavy tails upstream, fast decay downstream."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band

SAMPLES, SIDE = 200, 60


def predict(heavier: float, lighter: float) -> Band:
    return Band(low=0.0)


def as_printed(heavier: float, lighter: float) -> Band:
    return Band(high=0.0)


def basis(rows: int, generator: torch.Generator) -> Tensor:
    return torch.as_tensor(torch.linalg.qr(torch.randn(rows, SIDE, generator=generator, dtype=torch.float64))[0])


def feature_slope(weights: float, data: float, against: bool, generator: torch.Generator) -> float:
    """The least-squares rank exponent of XW, for weights whose spectrum has this density exponent."""
    rank = torch.arange(1, SIDE + 1, dtype=torch.float64)
    values, middle = rank ** (-0.5 / (weights - 1)), basis(SIDE, generator)
    x = (basis(SAMPLES, generator) * rank ** (-data / 2)) @ middle.T
    left = middle.flip(1) if against else basis(SIDE, generator)
    logs = 2 * torch.linalg.svdvals(x @ (left * values)).log()
    place = rank.log() - rank.log().mean()
    return -float((place * logs).sum() / place.square().sum())


def measure(heavier: float, lighter: float, *, generator: torch.Generator, against: bool = False) -> float:
    data = 3.0 if against else 0.5
    steep, flat = (feature_slope(weights, data, against, generator) for weights in (heavier, lighter))
    return steep - flat


law = Law(
    claim="Features behind weights of smaller density exponent decay faster with rank.",
    formula=r"\alpha_W\downarrow\ \Rightarrow\ \lambda_k(W^\top W)\propto k^{-1/(\alpha_W-1)},\ a_{XW}\uparrow",
    assumes={"weights in no special position to the data": {"against": True}},
    source="martin2021; agrawal2022",
    predict=predict,
    measure=measure,
    cases=tuple({"heavier": a, "lighter": b} for a, b in ((4.0, 6.0), (3.0, 4.0), (2.0, 3.0), (1.5, 2.0))),
    quantity="rise of the features' rank exponent",
    erratum="A post that joins weight and feature spectra concludes that features flatten as the weights' exponent falls; "
    "it used the rank exponent for one and quoted thresholds of the density exponent for the other. For the density "
    "exponent the direction is the opposite.",
    refuted=as_printed,
)
