r"""Noise is called structured in at most 5 % of draws, whatever its shape and whatever the law of its entries."""

import math
from itertools import product

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import gram_eigenvalues, marchenko_pastur_bulk, power_law
from theodolite.theory.spectra import structure

SHAPES = ((16, 16), (24, 96), (32, 40), (64, 64), (96, 48), (128, 20))
ENTRIES = ("gauss", "uniform")  # uniform is the default initialisation of a linear layer
REPEATS = 16


def predict(level: float) -> Band:
    # A rate of exactly 5 % is seen within three standard errors, and the interval of what is seen reaches three more.
    draws = REPEATS * len(SHAPES) * len(ENTRIES)
    return Band(high=level + 6 * math.sqrt(level * (1 - level) / draws))


def draw(rows: int, columns: int, entries: str, generator: torch.Generator) -> Tensor:
    if entries == "uniform":
        return 2 * torch.rand(rows, columns, generator=generator, dtype=torch.float64) - 1
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64)


def measure(level: float, *, generator: torch.Generator, planted: float = 0.0, decay: float = 0.0) -> list[float]:
    called = []
    for (rows, columns), entries in product(SHAPES, ENTRIES):
        x = draw(rows, columns, entries, generator)
        if planted:  # one direction, that many times the strength at which it begins to show
            left, right = draw(rows, 1, "gauss", generator), draw(columns, 1, "gauss", generator)
            x = x + planted**0.5 * (rows * columns) ** 0.25 * x.std() * left * right.T / left.norm() / right.norm()
        if decay:  # rows whose size falls as a power of their number
            x = x * torch.arange(1, rows + 1, dtype=torch.float64)[:, None] ** -decay
        values = gram_eigenvalues(x)
        bulk = marchenko_pastur_bulk(values, rows, columns)
        found = structure(rows, columns, alpha=power_law(values).alpha, bulk_distance=bulk.distance, excess=bulk.excess)
        called.append(float(found.at(level)))
    return called


law = Law(
    claim="At the 5 % level at most 5 % of matrices of independent entries are called structured.",
    formula=r"P(p\le0.05\mid\text{noise})\le0.05,\qquad p=\min(1,4\min_ip_i)",
    assumes={
        "no planted direction": {"planted": 9.0},
        "rows of equal size": {"decay": 0.7},
        "entries of finite fourth moment": None,
    },
    source="clauset2009; johnstone2001",
    predict=predict,
    measure=measure,
    cases=({"level": 0.05},),
    repeats=REPEATS,
    quantity="share called structured",
)
