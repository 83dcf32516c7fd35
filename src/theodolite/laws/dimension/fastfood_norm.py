r"""Fastfood keeps lengths, $E|y|^2=\frac DL|v|^2$, once it is divided by $\sqrt{L\sum g^2}$."""

import torch
from scipy.linalg import hadamard
from torch import Tensor
from torch.nn.functional import pad

from theodolite.construct.dimension import Fastfood, fastfood_image
from theodolite.core.law import Law
from theodolite.theory.dimension import next_power_of_two

DIMENSION, DRAWS = 20, 24


def predict(size: int, form: str) -> float:
    padded = next_power_of_two(size)
    return {"normalized": size / padded, "as printed": float(size * padded), "stacked": 1.0}[form]


def measure(size: int, form: str, *, generator: torch.Generator, transforms: int = 2) -> list[float]:
    """|y|^2 / |v|^2 over draws of the map, for one v."""
    v = torch.randn(DIMENSION, generator=generator, dtype=torch.float64)
    if transforms == 1:
        images = [_printed(v, size, generator, transforms) / size for _ in range(DRAWS)]
    elif form == "as printed":
        images = [_printed(v, size, generator) for _ in range(DRAWS)]
    elif form == "normalized":
        images = [fastfood_image(v, size, generator) for _ in range(DRAWS)]
    else:
        images = [_stacked(v, size, generator) for _ in range(DRAWS)]
    return [float(y.square().sum() / v.square().sum()) for y in images]


def _printed(v: Tensor, size: int, generator: torch.Generator, transforms: int = 2) -> Tensor:
    """[H G Pi H B v] cut to ``size``, with nothing divided; with one transform, [G Pi H B v]."""
    padded = 1 << (size - 1).bit_length()
    h = torch.from_numpy(hadamard(padded)).double()
    signs = 2.0 * torch.randint(0, 2, (padded,), generator=generator) - 1
    order = torch.randperm(padded, generator=generator)
    y = (h @ (pad(v, (0, padded - len(v))) * signs))[order]
    y = y * torch.randn(padded, generator=generator, dtype=torch.float64)
    return (h @ y if transforms == 2 else y)[:size]


def _stacked(v: Tensor, size: int, generator: torch.Generator) -> Tensor:
    drawn = Fastfood((size // 3, size - size // 3), len(v), generator)
    table = drawn.table(v)
    return torch.cat([drawn.part(table, 0), drawn.part(table, 1)])


law = Law(
    claim="The Fastfood map keeps squared lengths in the mean, but for the share of rows that are cut off, if it is divided "
    "by the root of L times the sum of squares of its Gaussian diagonal.",
    formula=r"y=\frac{[HG\Pi HBv]_{1..D}}{\sqrt{L\sum_ig_i^2}}:\quad E|y|^2=\frac DL|v|^2",
    assumes={"a transform before and one after the Gaussian diagonal": {"transforms": 1}, "signs by fair coins": None},
    source="le2013; li2018",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"size": size, "form": form} for size in (300, 500) for form in ("normalized", "as printed", "stacked")
    ),
    tolerance=0.04,  # 192 draws of a squared length that varies by about sqrt(2/300): 3 errors are 0.018
    quantity="|y|² / |v|²",
    erratum="The map is printed as HGΠHB, as if it kept lengths; so it multiplies them by √(L Σg²), about L: 512 here.",
    refuted=lambda size, form: 1.0 if form == "as printed" else predict(size, form),
)
