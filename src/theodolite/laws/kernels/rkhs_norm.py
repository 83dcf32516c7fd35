r"""The norm of the kernel $\min(x,y)$ is $\int f'^2$: what the smoothest interpolant of ever more values costs."""

import math

import torch

from theodolite.core.law import Law

POINTS = 400
FUNCTIONS = {"sin(pi t/2)": lambda t: torch.sin(0.5 * math.pi * t), "t": lambda t: t, "t^2": lambda t: t**2}
NORMS = {"sin(pi t/2)": math.pi**2 / 8, "t": 1.0, "t^2": 4 / 3}


def inverse_operator(function: str) -> float:
    """The sum of squared coefficients over squared eigenvalues, over a hundred eigenfunctions."""
    t = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    values, total = FUNCTIONS[function](t), 0.0  # type: ignore[no-untyped-call]
    for j in range(1, 101):
        frequency = (j - 0.5) * math.pi
        total += float((values * math.sqrt(2) * torch.sin(frequency * t)).mean()) ** 2 * frequency**4
    return total


def measure(function: str, *, shift: float = 0.0) -> float:
    """The squared norm of the interpolant of least norm, y K^-1 y."""
    t = torch.arange(1, POINTS + 1, dtype=torch.float64) / POINTS
    y = FUNCTIONS[function](t) + shift  # type: ignore[no-untyped-call]
    return float(y @ torch.linalg.solve(torch.minimum(t[:, None], t), y))


law = Law(
    claim="The space of a kernel is the image of the root of its integral operator; for min(x, y) its squared norm is the "
    "integral of the squared slope, for functions that vanish at 0.",
    formula=r"\|f\|_H^2=\sum_j\frac{f_j^2}{\lambda_j}=\int_0^1f'(t)^2\,dt",
    assumes={"a function that vanishes at 0": {"shift": 0.00012}},
    source="aronszajn1950",
    predict=lambda function: NORMS[function],
    measure=measure,
    cases=({"function": "sin(pi t/2)"}, {"function": "t"}, {"function": "t^2"}),
    tolerance=1e-4,  # the interpolant is linear between points: its norm errs by (f'' / N)^2 / 12
    quantity="squared norm",
    erratum="Lecture notes take the space to be the image of the inverse operator, that is coefficients over squared "
    "eigenvalues: 3.04 in place of 1.234 for sin(pi t/2).",
    refuted=inverse_operator,
)
