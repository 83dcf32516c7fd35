r"""The smoothed ReLU of order k has exactly 2k continuous derivatives: each order buys two."""

import math

import torch

from theodolite.construct.capacity import SReLU
from theodolite.core.law import Law


def predict(order: int) -> float:
    return 2 * order + 1


def measure(spacing: float, order: int, *, activation: str = "srelu") -> float:
    """The difference of order 2k+2 across the first knot, -w: nothing but the jump of derivative 2k+1 is left in it."""
    count = 2 * order + 2
    function = SReLU(order, smoothing_width=1.0) if activation == "srelu" else torch.nn.GELU()
    points = -1 + (torch.arange(count + 1, dtype=torch.float64) - count / 2) * spacing
    signs = torch.tensor([(-1.0) ** j * math.comb(count, j) for j in range(count + 1)], dtype=torch.float64)
    return abs(float((signs * function(points)).sum()))


law = Law(
    claim="SReLU of order k is 2k times continuously differentiable, and no more: its next derivative jumps.",
    formula=r"|\Delta_\delta^{2k+2}\mathrm{SReLU}_k(-w)|\propto\delta^{2k+1}",
    assumes={"a B-spline, not a smooth density": {"activation": "gelu"}},
    source="deboor1978",
    predict=predict,
    measure=measure,
    cases=tuple({"spacing": s, "order": k} for k in (1, 2) for s in (0.04, 0.06, 0.08, 0.12)),
    tolerance=1e-4,  # rounding: 1e-15 over the difference, 1e-9 at the smallest step
    exponent="spacing",
    quantity="difference of order 2k+2",
)
