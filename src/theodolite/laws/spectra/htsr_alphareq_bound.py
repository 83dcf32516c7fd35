r"""Features decay at most as fast as data and weights together, $a_Y\le2\log_{r}\kappa(X)+a_W$, in end-point exponents."""

import math
from typing import Literal

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import condition_number
from theodolite.theory.spectra import feature_exponent_bound, power_law_condition_number

SHAPE = (90, 30, 30)


def predict(data: float | Literal["step"], weights: float, exponents: str) -> Band:
    bound = for_any_exponents(data, weights, exponents)
    return Band(low=bound.high) if exponents == "fitted" else bound  # fitted ones of a step exceed it


def for_any_exponents(data: float | Literal["step"], weights: float, exponents: str) -> Band:
    kappa = 10.0 if data == "step" else power_law_condition_number(data, SHAPE[1])
    bound = feature_exponent_bound(kappa, weights, weight_rank=SHAPE[2], feature_rank=SHAPE[2])
    return Band(high=bound + 1e-9)  # rounding


def spectrum(shape: tuple[int, int], decay: float | Literal["step"]) -> Tensor:
    count = min(shape)
    if decay == "step":
        return torch.where(torch.arange(count) < count // 2, 1.0, 0.1).double()
    return torch.arange(1, count + 1, dtype=torch.float64) ** (-decay / 2)


def matrix(shape: tuple[int, int], decay: float | Literal["step"], generator: torch.Generator) -> Tensor:
    values = spectrum(shape, decay)
    left, right = (
        torch.linalg.qr(torch.randn(side, len(values), generator=generator, dtype=torch.float64))[0] for side in shape
    )
    return (left * values) @ right.T


def measure(
    data: float | Literal["step"],
    weights: float,
    exponents: str,
    *,
    generator: torch.Generator,
    few_samples: bool = False,
) -> float:
    n, d, m = (12, 40, 10) if few_samples else SHAPE
    features = matrix((n, d), data, generator) @ matrix((d, m), weights, generator)
    if exponents == "ends":
        return 2 * math.log(condition_number(features)) / math.log(min(n, m))
    logs = 2 * torch.linalg.svdvals(features).log()
    rank = torch.arange(1, len(logs) + 1, dtype=torch.float64).log()
    rank = rank - rank.mean()
    return -float((rank * logs).sum() / rank.square().sum())


law = Law(
    claim="The end-point exponent of linear features is bounded by those of the data and of the weights.",
    formula=r"a_Y\le2\log_{r_Y}\kappa(X)+a_W\log_{r_Y}r_W,\qquad a=2\log\kappa/\log r",
    assumes={"full rank, and the inputs not the longest side": {"few_samples": True}},
    source="horn2013",
    predict=predict,
    measure=measure,
    cases=(
        *({"data": x, "weights": w, "exponents": "ends"} for x, w in ((0.0, 0.0), (0.5, 2.0), (1.0, 1.0), (2.0, 0.5))),
        {"data": "step", "weights": 0.0, "exponents": "fitted"},
    ),
    quantity="exponent of the features",
    erratum="Stated for fitted exponents; a least-squares exponent may exceed the bound, because a condition number sees "
    "only the two ends of a spectrum. It also fails for few samples of wide inputs.",
    refuted=for_any_exponents,
)
