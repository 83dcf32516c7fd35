r"""The inner product with $K(x,\cdot)$ is evaluation at x: $\langle f,K(x,\cdot)\rangle_H=f(x)$."""

import math

import torch

from theodolite.core.law import Law

POINTS = 3000


def measure(function: str, at: float, *, shift: float = 0.0, kernel: str = "min(x, y)") -> float:
    """The integral of the product of slopes, by finite differences on a grid that holds all kinks."""
    t = torch.linspace(0, 1, POINTS + 1, dtype=torch.float64)
    if function == "sin 2t":
        f = torch.sin(2 * t + shift)
    else:
        f = shift * torch.cos(t) + torch.minimum(t, torch.tensor(0.3)) - 2 * torch.minimum(t, torch.tensor(0.8))
    point = torch.tensor(at, dtype=torch.float64)
    g = torch.minimum(t, point) - (t * point if kernel == "bridge" else 0.0)
    return float((f.diff() * g.diff()).sum() * POINTS)


law = Law(
    claim="In the space of a kernel evaluation is a bounded functional, represented by the kernel itself; for min(x, y) the "
    "inner product is the integral of the product of slopes.",
    formula=r"\langle f,K(x,\cdot)\rangle_H=f(x),\qquad|f(x)|\leq\|f\|_H\sqrt{K(x,x)}",
    assumes={
        "a function that vanishes at 0": {"shift": 3.8e-06},
        "the kernel of this inner product": {"kernel": "bridge"},
    },
    source="aronszajn1950",
    predict=lambda function, at: math.sin(2 * at) if function == "sin 2t" else min(at, 0.3) - 2 * min(at, 0.8),
    measure=measure,
    cases=tuple({"function": f, "at": at} for f in ("sin 2t", "a combination of kernels") for at in (0.2, 0.6)),
    tolerance=1e-6,  # differences of smooth functions on 3,000 intervals, kinks on the grid
    quantity="inner product with the kernel",
)
