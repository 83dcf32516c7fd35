r"""Classical scaling, and with it Isomap, minimizes the strain, not the stress: only the first has no slope there."""

import numpy as np
import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.dimension import classical_mds


def measure(objective: str, points: int, *, generator: torch.Generator, moved: float = 0.0) -> float:
    """The slope of the objective in two coordinates of five-dimensional points, over that at random coordinates."""
    x = torch.randn(points, 5, generator=generator, dtype=torch.float64)
    D = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    found = torch.from_numpy(np.ascontiguousarray(classical_mds(D.numpy(), 2).coordinates))
    elsewhere = torch.randn(points, 2, generator=generator, dtype=torch.float64)
    centering = torch.eye(points, dtype=torch.float64) - 1 / points
    B = -0.5 * centering @ D.square() @ centering
    upper = torch.triu_indices(points, points, 1)

    def slope(y: torch.Tensor) -> float:
        y = y.clone().requires_grad_()
        if objective == "strain":
            value = (B - y @ y.T).square().sum()
        else:
            value = ((y[upper[0]] - y[upper[1]]).norm(dim=1) - D[upper[0], upper[1]]).square().sum()
        return float(torch.autograd.grad(value, y)[0].norm())

    return slope(found + moved * elsewhere) / slope(elsewhere)


law = Law(
    claim="Coordinates by classical scaling are a stationary point of the strain and not of the stress.",
    formula=r"Y=\arg\min\|B-YY^\top\|_F^2\neq\arg\min\sum_{i<j}(|y_i-y_j|-d_{ij})^2",
    assumes={"the leading eigenvectors": {"moved": 1.9e-09}},
    source="torgerson1952; tenenbaum2000",
    predict=lambda objective, points: Band.around(0.0, abs=1e-9) if objective == "strain" else Band(low=1e-3),
    measure=measure,
    cases=tuple({"objective": o, "points": n} for o, n in (("strain", 12), ("strain", 40), ("stress", 40))),
    repeats=12,
    resolution=1e4,  # of the stress only that its slope is not zero: nine decades above rounding
    quantity="slope of the objective",
    erratum="Isomap is sometimes said to minimize the stress, the misfit of the distances; it solves classical scaling, which "
    "minimizes the strain, the misfit of inner products.",
    refuted=lambda **case: Band.around(0.0, abs=1e-9),
)
