r"""Data on a d-dimensional subspace has exactly d variances above rounding, in whatever columns and scale it comes."""

import torch

from theodolite.construct.dimension import rotated
from theodolite.core.law import Law
from theodolite.measure.dimension import linear_rank


def measure(
    dimension: int, columns: int, *, generator: torch.Generator, noise_variance: float = 0.0, bend: float = 0.0
) -> float:
    z = torch.randn(200, dimension, generator=generator, dtype=torch.float64)
    x = rotated(z, columns, generator=generator)
    x = x + bend * rotated(z[:, :1] ** 2, columns, generator=generator) + 1e3
    return float(linear_rank(x + noise_variance**0.5 * torch.randn(x.shape, generator=generator, dtype=torch.float64)))


law = Law(
    claim="The linear dimension of a linear manifold is its dimension, exactly; a bend or noise adds to it.",
    formula=r"\mathrm{rank}\,\mathrm{Cov}(x)=d",
    assumes={"no noise": {"noise_variance": 1e-08}, "no bend": {"bend": 0.001}, "more rows than dimensions": None},
    source="jolliffe2002",
    predict=lambda dimension, columns: float(dimension),
    measure=measure,
    cases=tuple({"dimension": d, "columns": p} for d, p in ((1, 10), (5, 50), (20, 300))),
    repeats=3,
    quantity="variances above rounding",
    along="dimension",
)
