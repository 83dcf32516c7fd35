r"""The units that memorize n points in practice are as many as the points, however many points and wherever they are."""

import torch

from theodolite.construct.capacity import least_squares_group
from theodolite.core.law import Law


def measure(n: int, inputs: int, *, generator: torch.Generator, distinct: int | None = None) -> float:
    """The fewest units, in steps of a twentieth of n, that fit random labels to a ten-thousandth of their mean square."""
    z = torch.randn(n, inputs, generator=generator, dtype=torch.float64)
    z = z / z.norm(dim=1, keepdim=True)
    y = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    if distinct:
        z, y = z[torch.arange(n) % distinct], y[torch.arange(n) % distinct]
    for units in range(n // 20, 4 * n, n // 20):
        group = least_squares_group(z, y, units=units, generator=generator)
        if float((y - group.outputs(z)).square().sum()) <= 1e-4 * float(y.square().sum()):
            return float(units)
    return 4.0 * n


law = Law(
    claim="To fit n random labels takes about n random units under least squares: the first power of n and nothing of the "
    "separation, where theorems ask for n over theta^4, n^4, n^6 or n^24.",
    formula=r"N\approx n",
    assumes={"points that are new": {"distinct": 30}},
    source="bresler2020",
    predict=lambda **case: 1.0,
    measure=measure,
    cases=tuple({"n": n, "inputs": d} for d in (2, 20) for n in (40, 60, 80, 100, 120, 160)),
    full=tuple({"n": n, "inputs": d} for d in (2, 20) for n in (200, 400)),
    repeats=3,
    tolerance=0.2,  # units come in steps of a twentieth: 5 % at each end of a fourfold range of n are 0.1 in the slope; room
    resolution=1.3,  # an exponent over a factor of four in n, in steps of a twentieth
    exponent="n",
    quantity="units needed",
)
