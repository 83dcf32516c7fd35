r"""Of a Gram matrix from rows that are kept by chance the largest eigenvalue stays below where matrix Chernoff puts it."""

import torch
from scipy.optimize import brentq
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.kernels import matrix_chernoff_tail

CHANCE, DRAWS, LEVEL = 0.02, 4000, 0.02


def predict(kept: int, side: int) -> Band:
    """The excess at which the bound on the chance falls to the level; kept is the mean number of rows for each direction."""

    def rest(excess: float) -> float:
        return matrix_chernoff_tail(excess, mean=1.0, bound=1.0 / kept, side=side) / LEVEL - 1

    return Band(high=float(brentq(rest, 1e-6, 10.0)))


def measure(kept: int, side: int, *, generator: torch.Generator, together: int = 1) -> float:
    """The excess that a share LEVEL of the draws goes beyond, of rows along the axes of a rotated frame."""
    rows = round(kept / CHANCE) // together  # of each direction
    frame = torch.linalg.qr(torch.randn(side, side, generator=generator, dtype=torch.float64))[0]
    counts = torch.binomial(
        torch.full((DRAWS, side), float(rows), dtype=torch.float64),
        torch.full((DRAWS, side), CHANCE, dtype=torch.float64),
        generator=generator,
    )
    grams: Tensor = (frame * (together * counts / kept)[:, None]) @ frame.T
    return float(torch.linalg.eigvalsh(grams)[:, -1].quantile(1 - LEVEL)) - 1


law = Law(
    claim="Rows of a matrix with orthogonal columns, each kept with a small chance, have a Gram matrix whose largest eigenvalue "
    "exceeds its mean about as rarely as matrix Chernoff says: its exponent is sharp.",
    formula=r"m\left[\frac{e^\epsilon}{(1+\epsilon)^{1+\epsilon}}\right]^{\mu/R}=p\ "
    r"\Rightarrow\ P\{\lambda_{\max}\geq(1+\epsilon)\mu\}\leq p",
    assumes={"rows kept one by one": {"together": 3}},
    source="tropp2015, Theorem 5.1.1",
    predict=predict,
    measure=measure,
    cases=({"kept": 400, "side": 1}, {"kept": 900, "side": 4}, {"kept": 100, "side": 2}),
    repeats=6,
    resolution=1.4,  # Chernoff leaves out the factor 1/(x sqrt(2 pi)) of the tail: sqrt(2 log 200) over the quantile 2.58 is 1.26
    quantity="relative excess of the largest eigenvalue",
)
