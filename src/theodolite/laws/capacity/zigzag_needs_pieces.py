r"""One hidden layer of d ReLU cannot fit more than d + 2 points on a line whose targets go up and down."""

import numpy as np
import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import impossible_from


def predict(width: int, points: int) -> Band:
    if points < impossible_from([width]):
        return Band(high=1 - 1e-7)
    return Band(low=1 - 1e-7)  # an error below 1 would have to change sign between all neighbors; 1e-7 is the solver's


def measure(width: int, points: int, *, generator: torch.Generator, fewer: int = 0, straight: bool = False) -> float:
    """The least largest error over networks with these kinks, by linear programming; the best of many sets of kinks."""
    from scipy.optimize import linprog

    n = points - fewer
    x = np.arange(n, dtype=float)
    y = x / n if straight else (-1.0) ** np.arange(n)
    best = np.inf
    for trial in range(12):
        kinks = np.sort(torch.rand(width, generator=generator, dtype=torch.float64).numpy()) * (n - 1)
        if trial == 0:
            kinks = np.linspace(1, n - 2, width)
        basis = np.column_stack([np.ones(n), x, np.maximum(x[:, None] - kinks, 0.0)])
        rows = np.block([[basis, -np.ones((n, 1))], [-basis, -np.ones((n, 1))]])
        cost = np.zeros(basis.shape[1] + 1)
        cost[-1] = 1.0
        bounds = [(None, None)] * basis.shape[1] + [(0, None)]
        best = min(best, linprog(cost, rows, np.concatenate([y, -y]), bounds=bounds).fun)
    return float(best)


law = Law(
    claim="N alternating targets on a line need N - 1 linear pieces: one ReLU layer of fewer than N - 2 units leaves an error "
    "of at least 1, whatever its weights.",
    formula=r"(p-1)d_1+2<N\ \Rightarrow\ \max_i|f(x_i)-(-1)^i|\ge 1",
    assumes={"more points than pieces + 1": {"fewer": 1}, "targets that go up and down": {"straight": True}},
    source="yun2019, Theorem 3.3",
    predict=predict,
    measure=measure,
    cases=({"width": 2, "points": 5}, {"width": 5, "points": 8}, {"width": 9, "points": 12}),
    repeats=2,
    quantity="least largest error",
    along="width",
)
