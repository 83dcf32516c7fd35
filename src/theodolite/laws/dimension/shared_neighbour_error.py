r"""Rows share neighbours: the textbook error of maximum likelihood is a third too small, and the overlap of the lists tells by how much."""

import torch

from theodolite.construct.manifolds import manifold
from theodolite.law import Law
from theodolite.measure.dimension import dimension_mle
from theodolite.reading import Band

ROWS, NEIGHBOURS = 300, 20


def predict(dimension: int) -> Band:
    # 1 for the right error; 480 squares err by 6.5 %, and the mean with its three errors needs twice three of them. The
    # textbook error gives 1/0.69^2 = 2.1
    return Band.around(1.0, abs=0.5)


def measure(dimension: int, *, generator: torch.Generator, shared: bool = True) -> list[float]:
    squares = []
    for _ in range(60):
        x = manifold("torus", ROWS, dimension, generator=generator)
        found = dimension_mle(x, neighbours=(NEIGHBOURS, NEIGHBOURS))
        error = found.stderr if shared else found.value / (ROWS * (NEIGHBOURS - 1)) ** 0.5
        squares.append(((found.value - dimension) / error) ** 2)
    return squares


law = Law(
    claim="The error that counts shared neighbours is the spread of the estimate over draws.",
    formula=r"\mathrm{var}=g^\top\frac{GG^\top}{k+1}g",
    assumes={"overlap is counted": {"shared": False}},
    source="denti2022",
    predict=predict,
    measure=measure,
    cases=({"dimension": 1},),
    full=({"dimension": 2},),
    quantity="mean square of (estimate - truth) / stated error",
)
