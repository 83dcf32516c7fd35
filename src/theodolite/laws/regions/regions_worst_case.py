r"""No ReLU network has more regions than $\prod_l\sum_{i\le d_l}\binom{n_l}i\le2^N$; random deep ones have far fewer."""

import torch
from torch import nn

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.regions import regions_in_polygon
from theodolite.theory.regions import region_bound

FAR = 1e4


def measure(widths: tuple[int, ...], *, generator: torch.Generator, activation: str = "ReLU") -> int:
    layers: list[nn.Module] = []
    for fan_in, width in zip((2, *widths), widths, strict=False):
        layer = nn.utils.skip_init(nn.Linear, fan_in, width, dtype=torch.float64)  # type: ignore[no-untyped-call]
        layer.weight.data.normal_(generator=generator)
        layer.bias.data.normal_(generator=generator)
        layers += [layer, getattr(nn, activation)()]
    return regions_in_polygon(nn.Sequential(*layers), [(-FAR, -FAR), (FAR, -FAR), (FAR, FAR), (-FAR, FAR)]).regions


law = Law(
    claim="The number of activation regions is at most the product over layers of the cells that its units cut out of the "
    "dimensions that reach it, and so at most 2^N for N units (3^N, as sometimes printed, is never reached).",
    formula=r"\#\text{regions}\le\prod_l\sum_{i\le\min(n_0,\dots,n_{l-1})}\binom{n_l}{i}\le2^{N}",
    assumes={"units that bend once": {"activation": "Hardtanh"}},
    source="montufar2014; raghu2017",
    predict=lambda widths: Band(high=region_bound(widths, 2)),
    measure=measure,
    cases=({"widths": (6,)}, {"widths": (3, 3)}, {"widths": (2, 2, 2)}),
    full=({"widths": (8, 8, 8)},),
    quantity="activation regions in the plane",
)
