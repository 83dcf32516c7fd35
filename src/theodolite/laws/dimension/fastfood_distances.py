r"""Of a vector's Fastfood image any $m$ entries give its length within $\pm\sqrt{2/m}$: a Johnson-Lindenstrauss map."""

import math

import torch
from scipy.linalg import hadamard
from torch import Tensor

from theodolite.construct.dimension import fastfood_image
from theodolite.core.law import Law

LENGTH, DRAWS = 512, 40


def measure(kept: int, *, generator: torch.Generator, signs: bool = True) -> float:
    """The spread of L/m times the squared length of m entries, over draws and over groups of m entries in each."""
    apart = torch.ones(LENGTH, dtype=torch.float64)  # the difference of two images that differ in brightness alone
    images = torch.stack([_image(apart, generator, signs) for _ in range(DRAWS)])
    squares = images.view(-1, kept).square().sum(1) / kept  # L/m over |v|^2, which is L
    return float((squares - 1).square().mean().sqrt())


def _image(v: Tensor, generator: torch.Generator, signs: bool) -> Tensor:
    if signs:
        return fastfood_image(v, LENGTH, generator)
    g = torch.randn(LENGTH, generator=generator, dtype=torch.float64)
    h = torch.from_numpy(hadamard(LENGTH)).double()
    y = h @ ((h @ v)[torch.randperm(LENGTH, generator=generator)] * g)
    return y / math.sqrt(LENGTH * float(g.square().sum()))


law = Law(
    claim="A few entries of the Fastfood image keep the distance of two points nearly as well as a Gaussian matrix does, for "
    "any two points: the random signs spread every difference over all entries.",
    formula=r"\operatorname{std}\!\left(\tfrac Lm\,|y_{1..m}|^2/|v|^2\right)\approx\sqrt{2/m+2/L}",
    assumes={"random signs first": {"signs": False}, "many fewer entries kept than there are": None},
    source="le2013; johnson1984",
    # A chi-square of m degrees has 2/m. Keeping m rows of L takes (2/m)(m/L) away; that HBv is not flat, its squares having
    # variance 2, makes pairs of entries covary and adds 4/L.
    predict=lambda kept: math.sqrt(2 / kept + 2 / LENGTH),
    measure=measure,
    cases=({"kept": 16}, {"kept": 64}, {"kept": 128}),
    # 320 squares or more in each of 16 repeats, those of one draw not quite independent: an error of 1.5 % with Student's t;
    # the band is twice three of them.
    tolerance=0.1,
    repeats=16,
    quantity="spread of squared distances",
    along="kept",
)
