r"""The noise of a corrective group grows as $\theta^{-4}$ as two points come close."""

import torch
from torch import Tensor

from theodolite.construct.capacity import literal_group, separated_pairs
from theodolite.core.law import Law

SAMPLES, UNITS, DRAWS = 16, 60, 80


def measure(theta: float, *, generator: torch.Generator, fixed: float | None = None) -> Tensor:
    x = separated_pairs(SAMPLES, 30, theta=theta, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([1.0, -1.0] * (SAMPLES // 2), dtype=torch.float64)
    many = literal_group(x, y[:, None], units=DRAWS * UNITS, theta=fixed or theta, generator=generator)
    return (y - many.shares(x, parts=DRAWS)).square().mean(1)


law = Law(
    claim="Halve the smallest distance between two points, and a corrective group needs sixteen times as many units.",
    formula=r"\frac{E|y-\hat y|^2}{|y|^2}\propto\theta^{-4}",
    assumes={"frequencies as wide as the separation asks": {"fixed": 0.2}},
    source="bresler2020, Theorem 1",
    predict=lambda **case: -4.0,
    measure=measure,
    cases=tuple({"theta": t} for t in (0.01, 0.016, 0.025, 0.04, 0.063, 0.1, 0.16)),
    repeats=10,
    # The taper adds terms of relative size 10-40 / alpha^2, alpha about 5.4 / theta: 3 % at theta = 0.16, nothing below; the
    # error of the slope is 0.03 or so, three of them 0.1, and as much room for its wander
    tolerance=0.06,
    exponent="theta",
    quantity="squared error left by one group",
)
