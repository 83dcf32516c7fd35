r"""A ball of radius R in d dimensions holds at most $(1+2R)^d$ points one apart: what n stable numbers can tell apart."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.capacity import greedy_cover
from theodolite.theory.capacity import separated_points_bounds


def predict(dimension: int, radius: float) -> Band:
    low, high = separated_points_bounds(dimension, radius)
    return Band(0.9 * low, high)  # the sample leaves gaps, some of which would have held another point


def measure(dimension: int, radius: float, *, generator: torch.Generator, more: int = 0, closer: float = 1.0) -> float:
    d = dimension + more
    direction = torch.randn(3000, d, generator=generator, dtype=torch.float64)
    length = torch.rand(3000, 1, generator=generator, dtype=torch.float64) ** (1 / d)
    points = radius * length * direction / direction.norm(dim=1, keepdim=True)
    radii = greedy_cover(points, count=200).radii
    return float((radii >= closer).sum()) + 1  # as many centers as were still that far from all before


law = Law(
    claim="Balls of radius one half about points one apart do not overlap, and about a largest such set balls of radius 1 "
    "cover: so their number is between R^d and (1+2R)^d. A stable code of n numbers of a set therefore cannot be "
    "much more accurate than its entropy number at n log bits.",
    formula=r"R^d\le\#\{\text{points one apart}\}\le(1+2R)^d\ \Rightarrow\ "
    r"\epsilon_{\lceil n\log_2(3R/\delta_n)\rceil}\le8\delta_n",
    assumes={"so many dimensions": {"more": 1}, "points one apart": {"closer": 0.3}},
    source="carl1981; cohen2022",
    predict=predict,
    measure=measure,
    cases=({"dimension": 1, "radius": 4.0}, {"dimension": 1, "radius": 10.0}, {"dimension": 2, "radius": 5.0}),
    full=({"dimension": 2, "radius": 6.0},),
    # Packing and covering numbers differ by up to 2^d, and a greedy set of points one apart may lie anywhere between
    resolution=2.0,
    repeats=10,
    quantity="points one apart in a ball",
)
