r"""A determinantal process $P(S)\propto\det L_S$ draws $\sum\lambda/(1+\lambda)$ points on average, marginals $L(1+L)^{-1}$."""

from itertools import combinations

import numpy as np
import torch

from theodolite.core.law import Law

POINTS = 5


def likelihood_kernel() -> torch.Tensor:
    x = torch.tensor([0.0, 0.3, 1.0, 1.8, 2.1], dtype=torch.float64)
    return 1.5 * torch.exp(-0.5 * (x[:, None] - x) ** 2)


def predict(what: str) -> float:
    L = likelihood_kernel().numpy()
    if what == "number of points":
        values = np.linalg.eigvalsh(L)
        return float((values / (1 + values)).sum())
    K = L @ np.linalg.inv(np.eye(POINTS) + L)
    return float(K[0, 0]) if what == "chance of the first" else float(K[0, 0] * K[1, 1] - K[0, 1] ** 2)


def measure(what: str, *, size: int | None = None) -> float:
    """By the determinants of all subsets (or of those of one size)."""
    L = likelihood_kernel()
    total = found = 0.0
    for number in range(POINTS + 1) if size is None else (size,):
        for subset in combinations(range(POINTS), number):
            weight = float(torch.linalg.det(L[list(subset)][:, list(subset)])) if subset else 1.0
            total += weight
            counted = {"number of points": number, "chance of the first": 0 in subset}
            found += weight * counted.get(what, {0, 1} <= set(subset))
    return found / total


law = Law(
    claim="Subsets drawn with chances proportional to the determinant of their kernel repel points that are alike; sizes and "
    "marginal chances follow from the eigenvalues.",
    formula=r"P(S)=\frac{\det L_S}{\det(I+L)},\quad P(A\subseteq S)=\det K_A,\quad K=L(I+L)^{-1}",
    assumes={"subsets of any size": {"size": 4}},
    source="kulesza2012, section 2.2",
    predict=predict,
    measure=measure,
    cases=({"what": "number of points"}, {"what": "chance of the first"}, {"what": "chance of the first two"}),
    tolerance=1e-9,  # an identity: rounding only
    quantity="expectation over subsets",
)
