r"""Noise of n rows and m columns has stable rank $nm/(\sqrt n+\sqrt m)^2$, and no direction of it stands out."""

import torch

from theodolite.core.law import Law
from theodolite.theory.spectra import noise_stable_rank


def measure(rows: int, columns: int, *, generator: torch.Generator, planted: float = 0.0) -> float:
    """``planted`` is a direction's strength, in units of the edge of the spectrum."""
    x = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    left, right = (torch.randn(side, 1, generator=generator, dtype=torch.float64) for side in (rows, columns))
    x = x + planted * (rows**0.5 + columns**0.5) * left @ right.T / (left.norm() * right.norm())
    return float(x.square().sum() / torch.linalg.matrix_norm(x, 2) ** 2)


law = Law(
    claim="The squared Frobenius norm of noise is spread over almost as many directions as the Marchenko-Pastur edge allows.",
    formula=r"\frac{\|W\|_F^2}{\|W\|_2^2}\to\frac{nm}{(\sqrt n+\sqrt m)^2}",
    assumes={"no planted direction": {"planted": 0.8}},
    source="marchenko1967",
    predict=lambda rows, columns: noise_stable_rank(rows, columns),
    measure=measure,
    cases=({"rows": 200, "columns": 200}, {"rows": 300, "columns": 100}, {"rows": 60, "columns": 600}),
    # the edge of a finite matrix lies 1.2 units of 0.63 n^(-2/3) inside: 2.5 % of it at 200, and as much at 60 by 600
    tolerance=0.06,
    repeats=24,
    quantity="stable rank",
)
