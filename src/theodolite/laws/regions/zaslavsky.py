r"""n hyperplanes in general position cut $\mathbb R^d$ into $\sum_{i\le d}\binom ni$ cells."""

import torch
from torch import nn

from theodolite.core.law import Law
from theodolite.measure.regions import regions_in_polygon, regions_on_line
from theodolite.theory.regions import hyperplane_cells


def measure(units: int, dimension: int, *, generator: torch.Generator, bias: float = 1.0) -> int:
    layer = nn.utils.skip_init(nn.Linear, dimension, units, dtype=torch.float64)  # type: ignore[no-untyped-call]
    layer.weight.data.normal_(generator=generator)
    layer.bias.data.normal_(0.0, bias, generator=generator)
    model = nn.Sequential(layer, nn.ReLU())
    if dimension == 1:
        return regions_on_line(model, [0.0], [1.0], whole=True).regions
    a, b = torch.triu_indices(units, units, 1)
    pairs = torch.stack([layer.weight[a], layer.weight[b]], 1)  # where two lines meet; the square holds all such points
    meet = torch.linalg.solve(pairs, -torch.stack([layer.bias[a], layer.bias[b]], 1).unsqueeze(2)).detach()
    far = 2 * float(meet.abs().amax()) + 1
    return regions_in_polygon(model, [(-far, -far), (far, -far), (far, far), (-far, far)]).regions


law = Law(
    claim="The zero sets of n ReLU units cut the input space into as many cells as hyperplanes in general position do.",
    formula=r"\#\text{cells}=\sum_{i=0}^{d}\binom{n}{i}",
    assumes={"general position": {"bias": 0.0}},
    source="zaslavsky1975",
    predict=lambda units, dimension: hyperplane_cells(units, dimension),
    measure=measure,
    cases=(
        {"units": 5, "dimension": 1},
        {"units": 4, "dimension": 2},
        {"units": 6, "dimension": 2},
        {"units": 30, "dimension": 2},
    ),
    full=({"units": 200, "dimension": 2},),
    tolerance=1e-9,  # an identity of integers
    repeats=3,
    quantity="cells",
)
