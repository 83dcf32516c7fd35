r"""One group of $N_0$ units leaves a share of the squared residual that has a closed form: a bias, and a noise over $N_0$."""

from functools import cache

import torch
from torch import Tensor

from theodolite.construct.capacity import literal_group
from theodolite.core.law import Law
from theodolite.theory.capacity import Contraction, corrective_contraction, dual_scale, separation

MARGIN, DRAWS = 0.6, 50


def points(n: int) -> tuple[Tensor, Tensor]:
    """Orthogonal points for n = 8, as far apart as many can be; else random ones in ten dimensions."""
    generator = torch.Generator().manual_seed(n)
    x = torch.eye(n, dtype=torch.float64)
    if n > 8:
        x = torch.randn(n, 10, generator=generator, dtype=torch.float64)
        x = x / x.norm(dim=1, keepdim=True)
    return x, torch.tensor([1.0, -1.0] * (n // 2), dtype=torch.float64)


@cache
def theory(n: int) -> Contraction:
    x, y = points(n)
    scale = dual_scale(n, separation(x), margin=MARGIN)
    return corrective_contraction(x, y, scale=scale, generator=torch.Generator().manual_seed(0), draws=20_000)


def measure(n: int, units: int, *, generator: torch.Generator, widen: float = 1.0) -> Tensor:
    x, y = points(n)
    theta = float(torch.pdist(x).min()) / widen
    many = literal_group(x, y[:, None], units=DRAWS * units, theta=theta, margin=MARGIN, generator=generator)
    return (y - many.shares(x, parts=DRAWS)).square().sum(1) / y.square().sum()


law = Law(
    claim="What a group of the literal scheme leaves of the squared residual is known exactly; it is small only for groups a "
    "thousand times wider than n over the fourth power of the separation.",
    formula=r"\frac{E|y-\hat y|^2}{|y|^2}=\frac{|(I-K)y|^2}{|y|^2}+\frac{E\,|F|^2\eta^2\sum_j(t_j-T)_+^2-|Ky|^2}{N_0|y|^2}"
    r"\approx\frac{32}{3}c^2\log^4n\,\frac{n}{\theta^4N_0}",
    assumes={"frequencies as wide as the separation asks": {"widen": 1.2}},
    source="bresler2020, Theorem 1",
    predict=lambda n, units: theory(n).factor(units),
    measure=measure,
    cases=({"n": 8, "units": 250}, {"n": 8, "units": 1500}, {"n": 30, "units": 100}),
    full=({"n": 30, "units": 2000}, {"n": 100, "units": 500}),
    repeats=12,
    # The square of a noise with few large directions scatters as much as it is: 1/sqrt 600 is 4 %, 5 % with the prediction's own
    # 1-2 % (20,000 frequencies). An interval of three errors that may lie three errors off asks for 30 %, which is what it tells
    tolerance=0.3,
    resolution=1.3,
    quantity="share of the squared residual left by one group",
    erratum="The slides' last line lets the norm itself, not its square, shrink by n over theta^4 N_0.",
    refuted=lambda n, units: theory(n).factor(units) ** 2,
)
