r"""1.1 n random ReLU units, output weights by least squares, fit any labels of n distinct points to rounding."""

import torch

from theodolite.construct.capacity import corrective
from theodolite.core.law import Law
from theodolite.core.reading import Band

SAMPLES = 150


def measure(inputs: int, *, generator: torch.Generator, units: float = 1.1, twins: bool = False) -> float:
    x = torch.randn(SAMPLES, inputs, generator=generator, dtype=torch.float64)
    if twins:  # the same points twice, to rounding
        x[SAMPLES // 2 :] = x[: SAMPLES // 2] * (1 + 1e-15)
    y = torch.randn(SAMPLES, generator=generator, dtype=torch.float64)
    network = corrective(x, y, method="least-squares", group_width=round(units * SAMPLES), generator=generator)
    assert network.report is not None
    return network.report.relative_mse


law = Law(
    claim="Least squares over 1.1 n units whose kinks lie between the points memorizes any labels, also on a line.",
    formula=r"N\ge1.1\,n\;\Rightarrow\;\min_b\sum_j\Bigl(y_j-\sum_{i\le N}b_i(w_i\cdot z_j-T_i)_+\Bigr)^2=0",
    assumes={"as many units as points": {"units": 0.95}},
    source="bresler2020",
    # The residual's floor is rounding times the weights: cond 1e4 or so, (1e-16 1e4)^2; 1e-12 leaves room for points a few 1e-4
    # apart on a line
    predict=lambda **case: Band.around(0.0, abs=1e-12),
    measure=measure,
    cases=({"inputs": 1}, {"inputs": 2}, {"inputs": 10}),
    full=({"inputs": 100},),
    repeats=8,
    quantity="squared error, share of the labels'",
    along="inputs",
)
