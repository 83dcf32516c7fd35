r"""Of a vector's Fastfood image any $m$ entries give its length within $\pm\sqrt{2/m}$: a Johnson-Lindenstrauss map."""

import math

import torch
from torch import Tensor

from theodolite.construct.projections import fastfood_image
from theodolite.law import Law
from theodolite.reading import Band
from theodolite.theory.hadamard import hadamard_transform

LENGTH, DRAWS = 512, 100


def predict(kept: int) -> Band:
    # To first order a chi-square of m degrees. What is left out: rows kept of L, 1 - m/L, and a transform HBv that is not
    # flat, 1 + 2m/L (its squares have variance 2): the spread is off by up to m/2L to either side. 0.1 more is noise: a
    # standard deviation from 100 draws errs by 7 % (more for few kept: heavier tails), the mean of 12 of them by 2 to 3 %.
    return Band.around(math.sqrt(2 / kept), rel=kept / (2 * LENGTH) + 0.1)


def measure(kept: int, *, generator: torch.Generator, signs: bool = True) -> float:
    """The spread over draws of the squared distance of two points' images, over its mean."""
    apart = torch.ones(LENGTH, dtype=torch.float64)  # the difference of two images that differ in brightness
    found = [_kept(apart, kept, generator, signs).square().sum() for _ in range(DRAWS)]
    squares = torch.stack(found) / kept  # L/m over |v|^2, which is L
    return float(squares.std())


def _kept(v: Tensor, kept: int, generator: torch.Generator, signs: bool) -> Tensor:
    if signs:
        return fastfood_image(v, kept, generator)
    g = torch.randn(LENGTH, generator=generator, dtype=torch.float64)
    y = hadamard_transform(v)[torch.randperm(LENGTH, generator=generator)] * g
    return hadamard_transform(y, scale=1 / math.sqrt(LENGTH * float(g.square().sum())))[:kept]


law = Law(
    claim="A few entries of the Fastfood image keep the distance of two points nearly as well as a Gaussian matrix does, for "
    "any two points: the random signs spread every difference over all entries.",
    formula=r"\operatorname{std}\!\left(\tfrac Lm\,|y_{1..m}|^2/|v|^2\right)\approx\sqrt{2/m}",
    assumes={"random signs first": {"signs": False}, "many fewer entries kept than there are": None},
    source="le2013; johnson1984",
    predict=predict,
    measure=measure,
    cases=({"kept": 16}, {"kept": 48}),
    full=({"kept": 128},),
    repeats=12,
    quantity="spread of squared distances",
    along="kept",
)
