r"""The number of pairs closer than r grows as $r^d$."""

import torch

from theodolite.construct.dimension import manifold, rotated
from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.dimension import dimension_correlation


def measure(kind: str, dimension: int, *, generator: torch.Generator, noise_variance: float = 0.0) -> Estimate:
    x = rotated(manifold(kind, 1000, dimension, generator=generator), 12, generator=generator)  # type: ignore[arg-type]
    x = x + noise_variance**0.5 * torch.randn(x.shape, generator=generator, dtype=torch.float64)
    return dimension_correlation(x, neighbors=(5, 10))


law = Law(
    claim="The logarithm of the number of close pairs grows with the logarithm of the distance at the slope of the dimension.",
    formula=r"C(r)\propto r^d",
    assumes={
        "no noise at those distances": {"noise_variance": 3.7e-06},
        "distances small compared with the manifold": None,
    },
    source="grassberger1983",
    predict=lambda kind, dimension: float(dimension),
    measure=measure,
    cases=tuple({"kind": k, "dimension": d} for k, d in (("torus", 1), ("sphere", 2), ("sphere", 3))),
    full=({"kind": "torus", "dimension": 2}, {"kind": "sphere", "dimension": 4}),
    tolerance=0.06,  # eight draws err by about 1 %, and the chords of a 3-sphere at 10 neighbors bend by 1 %
    quantity="correlation dimension",
    along="dimension",
)
