r"""k points of any space go into $26\log_2k$ dimensions by a random linear map with all distances kept within a factor two."""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.capacity import embedding, gaussian_map
from theodolite.theory.capacity import embedding_dimension

DISTORTION = 2.0  # sqrt((1 + d) / (1 - d)) at d = 0.6


def predict(bits: int, body: str, dimensions: int) -> Band:
    return Band(high=DISTORTION if dimensions >= embedding_dimension(2**bits) else math.inf)


def measure(
    bits: int, body: str, dimensions: int, *, generator: torch.Generator, share: float = 1.0, aimed: bool = False
) -> float:
    k = 2**bits
    matrix = gaussian_map(k, max(1, round(share * dimensions)), generator=generator)
    points = torch.eye(k, dtype=torch.float64)
    if body == "cloud":
        points = torch.randn(k, k, generator=generator, dtype=torch.float64) * torch.logspace(
            0, -2, k, dtype=torch.float64
        )
    if aimed:  # the second point lies off the first where the map is weakest
        points[1] = points[0] + torch.linalg.svd(matrix, full_matrices=True)[2][-1] + 0.2 * points[1]
    return embedding(matrix, points).distortion


law = Law(
    claim="A Gaussian matrix into 4 log k / (d^2/2 - d^3/3) dimensions, d = 0.6, keeps every distance of k points within a "
    "factor two of each other, whatever the points and their dimension, if it does not know them.",
    formula=r"m\ge\frac{4\ln k}{\delta^2/2-\delta^3/3}\ \Rightarrow\ \frac{\max_{i<j}\|A(x_i-x_j)\|/\|x_i-x_j\|}"
    r"{\min_{i<j}\|A(x_i-x_j)\|/\|x_i-x_j\|}\le\sqrt{\tfrac{1+\delta}{1-\delta}}",
    assumes={"enough dimensions": {"share": 0.15}, "map drawn without regard to the points": {"aimed": True}},
    source="dasgupta2003",
    predict=predict,
    measure=measure,
    cases=(
        {"bits": 8, "body": "simplex", "dimensions": 206},
        {"bits": 9, "body": "simplex", "dimensions": 232},
        {"bits": 8, "body": "cloud", "dimensions": 206},
    ),
    full=({"bits": 11, "body": "simplex", "dimensions": 283},),
    repeats=6,
    quantity="distortion",
)
