r"""On a flat manifold the weights of LLE reproduce its coordinates, which then lie in the null space of $(I-W)^\top(I-W)$."""

import torch

from theodolite.construct.dimension import manifold, rotated
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.dimension import lle_weights, nearest_neighbors

NEIGHBOURS = 10


def measure(dimension: int, *, generator: torch.Generator, curved: bool = False, neighbors: int = NEIGHBOURS) -> float:
    x = rotated(manifold("cube", 300, dimension, generator=generator), 12, generator=generator)
    if curved:
        x = torch.cos(3 * x @ torch.randn(12, 40, generator=generator, dtype=torch.float64))
    graph = nearest_neighbors(x, neighbors)
    weights = torch.from_numpy(lle_weights(graph, neighbors=neighbors, regularization=1e-9))
    points = graph.rows.points
    left = points - (weights[:, :, None] * points[torch.from_numpy(graph.indices)]).sum(1)
    near = graph.distances[:, 0].mean() / graph.rows.scale
    return float(left.norm(dim=1).mean() / near)


law = Law(
    claim="More neighbors than dimensions make every row of a flat manifold exactly from its neighbors.",
    formula=r"x_i=\sum_jw_{ij}x_j,\ \sum_jw_{ij}=1\ \Rightarrow\ (I-W)X=0,\quad Y^\top Y=nI",
    assumes={"flat": {"curved": True}, "more neighbors than dimensions": {"neighbors": 4}},
    source="roweis2000",
    # the regularization of 1e-9 that makes ten weights in d < 10 dimensions unique
    predict=lambda **case: Band.around(0.0, abs=1e-6),
    measure=measure,
    cases=({"dimension": 2}, {"dimension": 3}, {"dimension": 5}),
    repeats=4,
    quantity="what the neighbors leave, over the nearest distance",
)
