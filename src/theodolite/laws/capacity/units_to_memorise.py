r"""The units that memorise n points in practice grow as n, in one solve or in blocks."""

import torch

from theodolite.construct.corrective_groups import least_squares_group
from theodolite.law import Law

INPUTS = 20


def predict(method: str) -> float:
    return 1.0


def measure(n: int, method: str, *, generator: torch.Generator, width: int | None = None) -> float:
    z = torch.randn(n, INPUTS, generator=generator, dtype=torch.float64)
    z = z / z.norm(dim=1, keepdim=True)
    y = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    rest, units, limit = y, 0, 1e-4 * float(y.square().sum())
    while float(rest.square().sum()) > limit and units < 200 * n:
        # One solve tries ever more units; blocks of half as many units as points correct one another
        step = max(1, n // 20) if method == "one solve" else width or n // 2
        units += step
        start = y if method == "one solve" else rest
        group = least_squares_group(z, start, units=units if method == "one solve" else step, generator=generator)
        rest = start - group.outputs(z)
    return float(units)


law = Law(
    claim="To fit n random labels to a hundredth takes about n units in one least-squares solve and a few n in blocks: the first "
    "power of n and no separation, where theorems ask for n over theta^4, n^4, n^6 or n^24.",
    formula=r"N\propto n",
    assumes={"blocks that grow with the points": {"width": 20, "method": "blocks"}},
    source="bresler2020",
    predict=predict,
    measure=measure,
    cases=tuple({"n": n, "method": m} for m in ("one solve", "blocks") for n in (40, 80, 160)),
    full=tuple({"n": n, "method": m} for m in ("one solve", "blocks") for n in (320, 640)),
    repeats=3,
    tolerance=0.2,
    exponent="n",
    quantity="units needed",
)
