r"""With the best step along each group the literal scheme never diverges, and leaves at most $q/(1+q)$ where it left q."""

from functools import cache

import torch
from torch import Tensor

from theodolite.construct.capacity import line_search, literal_group
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import Contraction, corrective_contraction, dual_kernel, dual_scale

SAMPLES, THETA, MARGIN, DRAWS = 8, 2**0.5, 2.0, 40


def points() -> tuple[Tensor, Tensor]:
    return torch.eye(SAMPLES, dtype=torch.float64), torch.tensor([1.0, -1.0] * (SAMPLES // 2), dtype=torch.float64)


@cache
def theory() -> tuple[Contraction, float]:
    x, y = points()
    scale = dual_scale(SAMPLES, THETA, margin=MARGIN)
    along = float(y @ dual_kernel(x, scale=scale) @ y / (y @ y))
    return corrective_contraction(x, y, scale=scale, generator=torch.Generator().manual_seed(0)), along


def predict(units: int) -> Band:
    contraction, along = theory()
    # The best fixed step leaves 1 - <y, Ky>^2 / E|yhat|^2, q / (1 + q) where K is the identity; a step of each group's own, less
    second = contraction.factor(units) - 1 + 2 * along
    return Band(0.0, 1 - along**2 / second)


def measure(units: int, *, generator: torch.Generator, step: float | None = None) -> Tensor:
    x, y = points()
    many = literal_group(x, y[:, None], units=DRAWS * units, theta=THETA, margin=MARGIN, generator=generator)
    made = many.shares(x, parts=DRAWS).T  # (n, draws)
    gamma = line_search(y[:, None].expand_as(made), made) if step is None else step
    return (y[:, None] - gamma * made).square().sum(0) / y.square().sum()


law = Law(
    claim="A line search makes every group of the literal scheme do some good, however narrow it is.",
    formula=r"\min_\gamma\frac{E|y-\gamma\hat y|^2}{|y|^2}=\frac{q}{1+q},\qquad q=\frac{E|y-\hat y|^2}{|y|^2}",
    assumes={"the best step along each group": {"step": 1.0}},
    source="bresler2020",
    predict=predict,
    measure=measure,
    cases=({"units": 200}, {"units": 1000}, {"units": 3000}),
    repeats=8,
    quantity="share of the squared residual left by one group",
    along="units",
)
