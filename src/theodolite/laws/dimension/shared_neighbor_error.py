r"""Rows share neighbors: the textbook error of Gride is a third too small, and the overlap of the lists tells so."""

import numpy as np
import torch

from theodolite.construct.dimension import manifold
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.dimension import Neighbors, dimension_gride, nearest_neighbors

ROWS, NEAR, DRAWS = 160, 12, 60


def measure(dimension: int, *, generator: torch.Generator, shared: bool = True) -> list[float]:
    """Squares over the mean of the draws, not over the truth: over 24 of 160 neighbors a circle is bent."""
    found = []
    for _ in range(DRAWS):
        graph = nearest_neighbors(manifold("torus", ROWS, dimension, generator=generator), 2 * NEAR)
        if not shared:  # a graph that names no neighbors: distances alone
            graph = Neighbors(graph.distances, np.zeros((ROWS, 0), dtype=np.int64), graph.rows, graph.method)
        found.append(dimension_gride(graph, near=NEAR))
    mean = sum(estimate.value for estimate in found) / DRAWS
    return [DRAWS / (DRAWS - 1) * ((estimate.value - mean) / estimate.stderr) ** 2 for estimate in found]


law = Law(
    claim="The error that counts shared neighbors is the spread of the estimate over draws.",
    formula=r"\mathrm{var}=g^\top\frac{GG^\top}{k+1}g",
    assumes={"overlap is counted": {"shared": False}},
    source="denti2022",
    # 1 for the right error. Overlap stands for covariance only about: on tori it is 0.8 to 1.35 of the spread, which makes
    # squares of 0.55 to 1.55, and 480 of them err by 6 %. The textbook error is two thirds of the spread: squares above 2
    predict=lambda **case: Band(0.4, 1.6),
    measure=measure,
    cases=({"dimension": 1},),
    full=({"dimension": 2},),
    observed="overlap stands for covariance only about; no theory says how nearly",
    quantity="mean square of (estimate - its mean) / stated error",
)
