r"""Classical scaling gives back Euclidean distances exactly: the triangle 3, 4, 5, and any points."""

import numpy as np
import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.dimension import classical_mds


def measure(points: int, *, generator: torch.Generator, power: float = 1.0) -> float:
    x = torch.randn(points, 4, generator=generator, dtype=torch.float64).numpy()
    if points == 3:
        x = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    D = np.linalg.norm(x[:, None] - x[None], axis=-1) ** power
    y = classical_mds(D).coordinates
    return float(np.abs(np.linalg.norm(y[:, None] - y[None], axis=-1) - D).max() / D.max())


law = Law(
    claim="Points in space are recovered from their distances, up to a rigid motion.",
    formula=r"B=-\tfrac12JD^2J=YY^\top",
    assumes={"distances that points in space have": {"power": 1.0 + 7.1e-09}},
    source="torgerson1952",
    # square roots of eigenvalues that are right to 1e-16 of the largest, times the points
    predict=lambda **case: Band.around(0.0, abs=1e-9),
    measure=measure,
    cases=({"points": 3}, {"points": 12}, {"points": 40}),
    repeats=8,
    quantity="largest error of a distance",
)
