r"""Folded m times, a ReLU network computes the square on [0, 1] with error $4^{-(m+1)}$: how depth imitates Taylor series.

Products are differences of squares, so that networks of some $\log(1/\epsilon)$ layers follow any polynomial, and a smooth
function by its Taylor polynomials.
"""

import torch

from theodolite.construct.regions import sawtooth
from theodolite.core.law import Law


def measure(folds: int, *, weight: float = 0.25, right: float = 1.0) -> float:
    """The largest error over a grid that holds the middle of every piece."""
    x = torch.linspace(0, right, 8 * 2**folds + 1, dtype=torch.float64)[:, None]
    with torch.no_grad():
        teeth = sum(weight**fold * sawtooth(fold)(x) for fold in range(1, folds + 1))
    return float((x - teeth - x.square()).abs().max())


law = Law(
    claim="The identity less m sawtooth functions, each folded once more and a quarter as high, is the square up to 4 to the "
    "-(m + 1): the error falls exponentially in the depth, while one layer needs as many units as pieces.",
    formula=r"\max_{0\le x\le1}\Big|x-\sum_{s=1}^m4^{-s}f^{\circ s}(x)-x^2\Big|=4^{-(m+1)}",
    assumes={"teeth a quarter as high each": {"weight": 0.251}, "inputs between 0 and 1": {"right": 1.02}},
    source="yarotsky2017, Proposition 2",
    predict=lambda folds: 4.0 ** -(folds + 1),
    measure=measure,
    cases=tuple({"folds": folds} for folds in (1, 2, 4, 6)),
    full=({"folds": 9},),
    tolerance=1e-6,  # exact but for rounding
    quantity="largest error of the square",
    along="folds",
)
