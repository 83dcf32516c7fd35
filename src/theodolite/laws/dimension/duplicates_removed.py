r"""Repeated rows say nothing about dimension: without them TwoNN reads the truth, with them it is lost."""

import torch

from theodolite.construct.dimension import manifold
from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.dimension import dimension_twonn


def predict(share: float) -> float:
    return 5.0


def measure(share: float, *, generator: torch.Generator, removed: bool = True) -> Estimate:
    x = manifold("sphere", 1500, 5, generator=generator)
    again = torch.cat([x, x[: round(1500 * share)]])
    if not removed:  # moved by so little that no comparison of bits finds them
        again = again + 1e-9 * torch.randn(again.shape, generator=generator, dtype=torch.float64)
    return dimension_twonn(again, rule="likelihood")


law = Law(
    claim="With a tenth or half of the rows repeated, TwoNN still reads five dimensions if repeats are removed first.",
    formula=r"r_1=0\ \text{for repeated rows, so that}\ r_2/r_1\ \text{has no law}",
    assumes={"repeats are removed": {"removed": False}},
    source="facco2017",
    predict=predict,
    measure=measure,
    cases=({"share": 0.1}, {"share": 0.5}),
    tolerance=0.1,  # as in the law of the ratio
    repeats=10,
    quantity="dimension by TwoNN",
    along="share",
)
