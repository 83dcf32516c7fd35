r"""Isomap unrolls a flat sheet: its coordinates keep the distances along the sheet, and two of them suffice."""

import torch

from theodolite.construct.manifolds import rolled, unrolled_length
from theodolite.law import Law
from theodolite.measure.embedding_quality import embedding_quality
from theodolite.measure.embeddings import isomap
from theodolite.reading import Band


def predict(quantity: str) -> Band:
    # paths over 400 rows zigzag: lengths are a few per cent too long, which correlates them with the truth at R^2 of 0.99;
    # two coordinates are found exactly
    return Band(high=0.02) if quantity == "residual" else Band.around(2.0)


def measure(quantity: str, *, generator: torch.Generator, neighbours: int = 8) -> float:
    # one row in each cell of a grid: a sheet drawn at random has holes wide enough for a path to jump to the next turn
    corners = torch.cartesian_prod(torch.arange(50), torch.arange(8)).double()
    flat = (corners + torch.rand(400, 2, generator=generator, dtype=torch.float64)) / torch.tensor([50.0, 8.0])
    x = torch.stack(rolled(flat), dim=1)
    found = isomap(x, neighbours=neighbours, most_dimensions=6)
    if quantity == "dimension":
        return float(found.dimension)
    sheet = torch.stack([unrolled_length(x), x[:, 1]], dim=1)
    return embedding_quality(sheet.numpy(), found.coordinates[:, :2]).residual


law = Law(
    claim="Classical scaling of shortest paths recovers the flat coordinates of a rolled sheet.",
    formula=r"1-R^2(D_{flat},D_Y)\to0",
    assumes={"no shortcut between turns": {"neighbours": 60}, "a convex flat sheet": None},
    source="tenenbaum2000",
    predict=predict,
    measure=measure,
    cases=({"quantity": "residual"}, {"quantity": "dimension"}),
    repeats=3,
    quantity="residual variance, and coordinates needed",
)
