r"""Two hidden ReLU layers have at most $(d_1+1)(d_2+1)$ linear pieces along a line."""

from itertools import pairwise

import torch
from torch import nn

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.regions import regions_on_line
from theodolite.theory.capacity import most_pieces


def measure(
    first: int, second: int, *, generator: torch.Generator, three_pieces: bool = False, deeper: bool = False
) -> float:
    """A saw of the first layer that every unit of the second cuts at its own height, with a little noise."""
    act = nn.Hardtanh if three_pieces else nn.ReLU
    widths = [1, first, second, *([4] if deeper else [])]
    layers: list[nn.Module] = []
    linear = [nn.Linear(a, b, dtype=torch.float64) for a, b in pairwise([*widths, 1])]
    for layer in linear[:-1]:
        layers += [layer, act()]
    net = nn.Sequential(*layers, linear[-1])
    alternating = (-1.0) ** torch.arange(first, dtype=torch.float64)
    place = torch.arange(first, dtype=torch.float64)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.01 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        linear[0].weight.fill_(2.0 * first if three_pieces else first)
        linear[0].bias.copy_(-2 * place - 1 if three_pieces else -place)
        # teeth from -20 to 20, or 0 to 1
        scale, lift = (20.0, 0.0 if first % 2 else 20.0) if three_pieces else (1.0, 0.0)
        teeth = alternating * (1.0 if three_pieces else torch.where(place > 0, 2.0, 1.0))
        heights = (torch.arange(second, dtype=torch.float64) + 0.5) / second
        linear[1].weight.copy_(scale * teeth.expand(second, -1))
        linear[1].bias.copy_(lift - (scale * (2 * heights - 1) if three_pieces else heights))
        if deeper:  # a saw of the second layer, cut once more
            linear[2].weight.copy_((-1.0) ** torch.arange(second, dtype=torch.float64).expand(4, -1))
            linear[2].bias.copy_(-torch.linspace(0.01, 0.04, 4, dtype=torch.float64) / second)
        linear[-1].weight.copy_(torch.randn(linear[-1].weight.shape, generator=generator, dtype=torch.float64))
    return float(regions_on_line(net, torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)).pieces)


law = Law(
    claim="Along a line two hidden ReLU layers have at most (d1+1)(d2+1) linear pieces, and a saw comes near that.",
    formula=r"\mathrm{pieces}\le (p-1)d_1+(p-1)d_2\big((p-1)d_1+1\big)+1=(d_1+1)(d_2+1)\ \ (p=2)",
    assumes={"activations of two pieces": {"three_pieces": True}, "two hidden layers": {"deeper": True}},
    source="yun2019, Theorem 3.3",
    predict=lambda first, second: Band(high=most_pieces([first, second])),
    measure=measure,
    cases=({"first": 8, "second": 8}, {"first": 5, "second": 12}, {"first": 20, "second": 10}),
    repeats=2,
    quantity="linear pieces along a line",
)
