r"""Greedy covering finds entropy numbers within a factor two: $\frac{1}{n+1}$ for Lipschitz functions, $2^{-(k+1)}$ for cubes."""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.capacity import greedy_cover, zigzags
from theodolite.theory.capacity import cube_entropy_number, lipschitz_entropy_number


def predict(body: str, bits: int) -> Band:
    if body == "lipschitz":
        exact = lipschitz_entropy_number(bits)
    elif body == "square":
        exact = cube_entropy_number(2, bits)
    else:
        exact = math.sqrt(0.5)  # a disc by four
    # a sample of some thousand points may be covered by 7 % smaller balls than the set
    return Band(0.93 * exact, 2 * exact)


def measure(body: str, bits: int, *, generator: torch.Generator, scale: float = 1.0, anchored: bool = True) -> float:
    if body == "lipschitz":
        points = zigzags(12, steepness=scale)
    elif body == "square":
        points = scale * torch.rand(4000, 2, generator=generator, dtype=torch.float64)
    else:
        angle, power = (
            2 * math.pi * torch.rand(4000, generator=generator, dtype=torch.float64),
            torch.linspace(0, 1, 4000).double(),
        )
        points = scale * power.sqrt()[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    if not anchored:
        points = points + 6 * torch.rand(len(points), 1, generator=generator, dtype=torch.float64)
    points = points[torch.randperm(len(points), generator=generator)]
    return float(greedy_cover(points, count=2**bits, norm="euclidean" if body == "disc" else "sup").radii[-1])


law = Law(
    claim="The radius of a greedy cover by 2^n balls lies between the entropy number of the set and twice that; n bits leave "
    "1/(n+1) of a Lipschitz function open, and 2^-(k+1) of a point in a square at two times k bits.",
    formula=r"\epsilon_n\le r_{\mathrm{greedy}}\le2\epsilon_n,\quad\epsilon_n(\mathrm{Lip}_1,f(0)=0)=\frac{1}{n+1}",
    assumes={
        "slopes and sides at most 1": {"scale": 1.9},
        "f(0) = 0": {"anchored": False},
        "a sample as rich as the set": None,
    },
    source="kolmogorov1959; gonzalez1985",
    predict=predict,
    measure=measure,
    cases=(
        {"body": "lipschitz", "bits": 3},
        {"body": "lipschitz", "bits": 7},
        {"body": "square", "bits": 6},
        {"body": "disc", "bits": 2},
    ),
    full=({"body": "square", "bits": 2}, {"body": "lipschitz", "bits": 1}),
    resolution=2.0,  # a greedy cover may lie anywhere within a factor of two: the theorem says no more
    repeats=12,
    quantity="radius of a greedy cover by 2^bits balls",
)
