r"""Isomap unrolls a flat sheet: its coordinates keep the distances along the sheet, and two of them suffice."""

import torch

from theodolite.construct.dimension import rolled, unrolled_length
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.dimension import isomap


def measure(turns: float, *, generator: torch.Generator, neighbors: int = 6) -> float:
    """What two coordinates leave of the distances along the sheet; 1 where not two are read off the residual variance."""
    # one row in each cell of a grid: a sheet drawn at random has holes wide enough for a path to jump to the next turn
    corners = torch.cartesian_prod(torch.arange(40), torch.arange(9)).double()
    cells = torch.tensor([40 * 1.5 / turns, 13.0])
    x = torch.stack(rolled((corners + torch.rand(360, 2, generator=generator, dtype=torch.float64)) / cells), dim=1)
    found = isomap(x, neighbors=neighbors, most_dimensions=5)
    sheet = torch.stack([unrolled_length(x), x[:, 1]], dim=1)
    both = torch.stack([torch.pdist(sheet), torch.pdist(torch.from_numpy(found.coordinates[:, :2].copy()))])
    return 1 - float(torch.corrcoef(both)[0, 1]) ** 2 if found.dimension == 2 else 1.0


law = Law(
    claim="Classical scaling of shortest paths recovers the flat coordinates of a rolled sheet.",
    formula=r"1-R^2(D_{flat},D_Y)\to0",
    assumes={"no shortcut between turns": {"neighbors": 60}, "a convex flat sheet": None},
    source="tenenbaum2000",
    # paths over 360 rows zigzag: lengths are a few per cent too long, which correlates with the truth at R^2 above 0.99
    predict=lambda **case: Band.around(0.0, abs=0.02),
    measure=measure,
    cases=({"turns": 0.8}, {"turns": 1.0}, {"turns": 1.2}),
    repeats=3,
    quantity="residual variance of two coordinates",
)
