r"""The noise of a corrective group grows as $\theta^{-4}$ as two points come close."""

import torch

from theodolite.construct.corrective_groups import literal_group
from theodolite.construct.separated_points import separated_pairs
from theodolite.law import Law

SAMPLES, UNITS = 16, 300


def predict() -> float:
    return -4.0


def measure(theta: float, *, generator: torch.Generator, fixed: float | None = None) -> float:
    x = separated_pairs(SAMPLES, 30, theta=theta, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([1.0, -1.0] * (SAMPLES // 2), dtype=torch.float64)
    group = literal_group(x, y[:, None], units=UNITS, theta=fixed or theta, generator=generator)
    return float((y - group.outputs(x)[:, 0]).square().mean())


law = Law(
    claim="Halve the smallest distance between two points, and a corrective group needs sixteen times as many units.",
    formula=r"\frac{E|y-\hat y|^2}{|y|^2}\propto\theta^{-4}",
    assumes={"frequencies as wide as the separation asks": {"fixed": 0.2}},
    source="bresler2020, Theorem 1",
    predict=predict,
    measure=measure,
    cases=tuple({"theta": t} for t in (0.05, 0.1, 0.2, 0.4)),
    repeats=250,
    # The taper adds terms of relative size 10-40 / alpha^2, alpha about 5.4 / theta: 20 % at theta = 0.4, nothing at 0.05,
    # which flattens the slope by at most 0.1; its error is 0.04, three of them 0.12
    tolerance=0.07,
    exponent="theta",
    quantity="squared error left by one group",
)
