r"""A deep ReLU network that imitates Taylor series errs by at most $c_aM/(a!N^a)$ where $|f^{(a)}|\le M$, and some f reach it.

Hats on N cells share out the Taylor polynomials of degree a - 1 about their knots; folds multiply, up to 4 to the minus their
number. At t of a cell the polynomials of its two knots err by up to $t^a$ and $(1-t)^a$ times $M/(a!N^a)$, which the hats weigh
by 1 - t and t. Both are reached, with signs that add, where the a-th derivative is M, and for odd a turns in the middle of each
cell. So the error falls as the number of units to the -a, but for the logarithm that folds cost.
"""

import math

import torch
from torch import Tensor

from theodolite.construct.regions import sawtooth
from theodolite.core.law import Law

POINTS = 240  # of a cell, its middle among them
LARGEST = {1: 1 / 2, 2: 1 / 4, 3: 1 / 8, 4: 1 / 12}  # of (1 - t) t^a + t (1 - t)^a


def predict(order: int, cells: int) -> float:
    return LARGEST[order] / math.factorial(order) / float(cells) ** order


def measure(order: int, cells: int, *, folds: int = 18, bound: float = 1.0) -> float:
    """The largest error of the network on the function that is farthest from its Taylor polynomials."""
    inside = torch.linspace(0, 1 / cells, POINTS + 1, dtype=torch.float64)
    x = torch.cat([inside + place / cells for place in range(cells)])
    knots, truth = [torch.zeros(order, dtype=torch.float64)], []
    for _ in range(cells):
        ahead = torch.stack([_ahead(knots[-1][j:], inside, bound, turns=order % 2 == 1) for j in range(order)])
        knots.append(ahead[:, -1])
        truth.append(ahead[0])
    with torch.no_grad():
        answer = sum(_share(derivatives, x - place / cells, cells, folds) for place, derivatives in enumerate(knots))
    return float((answer - torch.cat(truth)).abs().max())


def _ahead(derivatives: Tensor, u: Tensor, bound: float, *, turns: bool) -> Tensor:
    """A cell of the function from its derivatives at the knot; the one after these is the bound, or turns to less the bound."""
    order = len(derivatives)
    last = u**order - 2 * turns * torch.relu(u - u[-1] / 2) ** order
    known = (value * u**j / math.factorial(j) for j, value in enumerate(derivatives))
    return sum(known, bound * last / math.factorial(order))


def _share(derivatives: Tensor, u: Tensor, cells: int, folds: int) -> Tensor:
    """What the network makes of one knot: its hat times its Taylor polynomial, in products of folds."""
    power, taylor = torch.ones_like(u), derivatives[0].expand_as(u)
    for j, value in enumerate(derivatives[1:], start=1):
        power = u if j == 1 else _product(power, u, folds)
        taylor = taylor + value * power / math.factorial(j)
    return _product(torch.relu(1 - cells * u.abs()), taylor, folds)


def _product(a: Tensor, b: Tensor, folds: int) -> Tensor:
    """A difference of squares, each folded: 0 where a factor is."""
    whole, first, second = (_square(v.abs() / 2, folds) for v in (a + b, a, b))
    return 2 * (whole - first - second)


def _square(x: Tensor, folds: int) -> Tensor:
    tent, tooth, square = sawtooth(1), x[:, None], x.clone()
    for fold in range(1, folds + 1):
        tooth = tent(tooth)
        square -= tooth[:, 0] / 4**fold
    return square


law = Law(
    claim="Hats, folds and the Taylor polynomials of N + 1 knots make a deep ReLU network whose error on a function with an "
    "a-th derivative of at most 1 is c_a / (a! N^a) or less, with c = 1/2, 1/4, 1/8, 1/12 for a = 1 to 4; the worst one has it.",
    formula=r"\max_{|f^{(a)}|\le1}\max_x|f_N(x)-f(x)|=\frac{1}{a!\,N^a}\max_{0\le t\le1}\big((1-t)t^a+t(1-t)^a\big)",
    assumes={"a derivative within the bound": {"bound": 1.01}, "products folded often enough": {"folds": 6}},
    source="yarotsky2017, Theorem 1",
    predict=predict,
    measure=measure,
    cases=(
        {"order": 1, "cells": 5},
        {"order": 2, "cells": 3},
        {"order": 3, "cells": 5},
        {"order": 4, "cells": 3},
        {"order": 4, "cells": 6},
    ),
    tolerance=0.005,
    quantity="largest error of the network",
)
