r"""An objective of $k$ directions is reached by a random subspace of $d$ up to the share $1-d/k$, whatever projection."""

import torch

from theodolite.construct.dimension.projections import KINDS
from theodolite.core.law import Law
from theodolite.core.reading import Band

PARAMETERS, DIRECTIONS = (100, 28), 20


def predict(dimension: int, projection: str) -> Band:
    left = max(0.0, 1 - dimension / DIRECTIONS)
    # A Beta variable of standard deviation sqrt(2 l (1 - l) / (k + 2)), 0.15 at l = 1/2: over 60 draws an error of 0.02,
    # and the band is more than twice three of them.
    return Band.around(left, abs=0.14) if left else Band.around(0.0, abs=1e-9)


def measure(
    dimension: int, projection: str, *, generator: torch.Generator, directions: int = DIRECTIONS
) -> list[float]:
    """The least |A (theta_0 + P theta_d) - b|^2 over |A theta_0 - b|^2, A of orthonormal rows, over draws."""
    found = []
    for _ in range(12):
        drawn = KINDS[projection](PARAMETERS, dimension, generator)
        a = torch.linalg.qr(torch.randn(sum(PARAMETERS), directions, generator=generator, dtype=torch.float64))[0].T
        table = drawn.table(torch.eye(dimension, dtype=a.dtype))
        p = torch.cat([drawn.part(table, place) for place in range(len(PARAMETERS))], dim=-1).T
        residual = torch.randn(directions, generator=generator, dtype=torch.float64)
        best = torch.linalg.lstsq(a @ p, residual[:, None]).solution[:, 0]
        found.append(float((residual - a @ p @ best).square().sum() / residual.square().sum()))
    return found


law = Law(
    claim="A linear objective that constrains k directions of parameter space is met exactly in a random subspace of k "
    "dimensions; with fewer, the share of the squared error that stays is what the missing dimensions leave.",
    formula=r"\min_{\theta_d}\frac{|A(\theta_0+P\theta_d)-b|^2}{|A\theta_0-b|^2}\to1-\frac dk,\qquad 0\ \text{for}\ d\ge k",
    assumes={"an objective of k directions": {"directions": DIRECTIONS + 1}, "constraints in general position": None},
    source="li2018",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"dimension": d, "projection": kind} for d in (10, 20) for kind in ("fastfood", "sparse", "dense", "tied")
    ),
    repeats=5,
    quantity="share of the squared error left",
)
