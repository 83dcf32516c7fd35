r"""Shuffled columns tell how many directions are more than chance: as many as were planted, none in noise."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.dimension import dimension_parallel


def measure(factors: int, *, generator: torch.Generator, strength: float = 0.7) -> float:
    noise = torch.randn(300, 20, generator=generator, dtype=torch.float64)
    scores = torch.randn(300, max(factors, 1), generator=generator, dtype=torch.float64)
    basis = torch.linalg.qr(torch.randn(20, max(factors, 1), generator=generator, dtype=torch.float64))[0]
    loadings = 20**0.5 * basis.T * (factors > 0)
    return dimension_parallel(noise + strength * scores @ loadings).value


law = Law(
    claim="Parallel analysis counts the factors that were planted.",
    formula=r"\lambda_k(R)>\max_{\text{shuffles}}\lambda_k(R_{\text{shuffled}})",
    assumes={"factors above the noise": {"strength": 0.1}},
    source="horn1965",
    # each draw lets noise through once in 20; three of 16 come once in a hundred runs, and their mean of 0.19 with three errors
    # of 0.12 reaches 0.55
    predict=lambda factors: Band.around(float(factors), abs=0.7),
    measure=measure,
    cases=({"factors": 0}, {"factors": 2}, {"factors": 5}),
    repeats=16,
    quantity="directions above chance",
    along="factors",
)
