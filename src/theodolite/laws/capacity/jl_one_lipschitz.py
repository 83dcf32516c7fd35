r"""No linear map of norm 1 into $32\ln k$ dimensions keeps a simplex of many points: some distance falls to $\sqrt{m/(k-1)}$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.capacity import embedding
from theodolite.theory.capacity import contraction_bound


def measure(
    points: int, dimension: int, *, generator: torch.Generator, stretched: bool = False, flat: bool = False
) -> float:
    found = torch.linalg.qr(torch.randn(points, dimension, generator=generator, dtype=torch.float64))[0].T
    matrix = found - found.mean(1, keepdim=True)  # nothing is spent on the direction that all corners share
    if stretched:
        matrix = matrix * (points / dimension) ** 0.5
    corners = torch.eye(points, dtype=torch.float64)
    if flat:  # as many points in a plane that the map keeps
        corners = torch.randn(points, 2, generator=generator, dtype=torch.float64) @ found[:2]
    return embedding(matrix, corners).least


law = Law(
    claim="Over the pairs of a simplex of k corners the mean squared ratio of distances under a linear map of norm 1 into m "
    "dimensions is at most m/(k-1), so some pair comes closer than that: keeping half takes m of order k, not log k.",
    formula=r"\min_{i<j}\frac{\|A(e_i-e_j)\|}{\|e_i-e_j\|}\le\sqrt{\frac{m}{k-1}}\quad\text{for linear }A,\ \|A\|\le1",
    assumes={"norm at most 1": {"stretched": True}, "corners of a simplex": {"flat": True}},
    source="dasgupta2003; cohen2022",
    predict=lambda points, dimension: Band(high=contraction_bound(points, dimension)),
    measure=measure,
    # the last has 8 ln(1024) / eps^2 dimensions at eps = 1/2
    cases=tuple({"points": k, "dimension": m} for k, m in ((256, 30), (512, 60), (1024, 222))),
    full=({"points": 2048, "dimension": 352},),
    repeats=4,
    quantity="least ratio of distances",
    erratum="Lecture notes ask for a linear 1-Lipschitz map into 8 log k / eps^2 dimensions that shrinks no distance "
    "below 1 - eps. On a simplex there is none. A random map is 1-Lipschitz on the points only; "
    "its extension to the space is not linear.",
    refuted=lambda **case: Band(low=0.5),
)
