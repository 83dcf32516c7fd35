r"""A ReLU layer of n units on one input makes $n+1$ pieces: each unit bends the function once."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.regions import network_line_counts
from theodolite.theory.regions import hyperplane_cells

NETS = 200


def measure(width: int, *, generator: torch.Generator, grid: bool = False) -> Tensor:
    shapes = ((NETS, width, 1), (NETS, width), (NETS, 1, width))
    first, bias, last = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    if grid:
        first, bias = first.sign(), bias.round()
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    return network_line_counts([first, last], [bias, None], start=zero, end=one, whole=True)[1].double()


law = Law(
    claim="A shallow ReLU network of n units on one input has n + 1 linear pieces, almost surely.",
    formula=r"\#\text{pieces}=n_1+1",
    assumes={"weights and biases that have densities": {"grid": True}},
    source="montufar2014",
    predict=lambda width: hyperplane_cells(width, 1),
    measure=measure,
    cases=({"width": 1}, {"width": 8}, {"width": 64}),
    full=({"width": 512},),
    tolerance=1e-9,  # an identity of integers
    along="width",
    quantity="linear pieces",
)
