r"""Noise is called structured in at most 5 % of draws: the tails of three statistics of noise are those of the table."""

import math
from typing import Literal

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import gram_eigenvalues, marchenko_pastur_bulk, power_law
from theodolite.theory.spectra import structure

Test = Literal["alpha", "bulk", "excess"]
REPEATS, DRAWS = 8, 60
TESTS = 4  # a p-value is four times that of one test


def predict(shape: tuple[int, int], test: Test, beyond: float, entries: str) -> Band:
    """The p-value of one test alone: the chance that noise goes beyond."""
    seen = {"alpha": math.nan, "bulk_distance": math.nan, "excess": math.nan}
    seen["bulk_distance" if test == "bulk" else test] = beyond
    chance = structure(shape[0], shape[1], **seen).p_value / TESTS
    # A share seen in so many draws errs by sqrt(p (1 - p) / draws): three such errors are its interval, three where it falls
    room = 6 * math.sqrt(chance * (1 - chance) / (REPEATS * DRAWS))
    # Uniform entries, of smaller fourth moment, go beyond less often: half as often for the largest eigenvalue at side 64
    return Band.around(chance, abs=room) if entries == "gauss" else Band(high=chance + room)


def measure(
    shape: tuple[int, int],
    test: Test,
    beyond: float,
    entries: str,
    *,
    generator: torch.Generator,
    planted: float = 0.0,
    decay: float = 0.0,
) -> list[float]:
    return [float(_beyond(_noise(shape, entries, planted, decay, generator), test, beyond)) for _ in range(DRAWS)]


def _noise(shape: tuple[int, int], entries: str, planted: float, decay: float, generator: torch.Generator) -> Tensor:
    rows, columns = shape
    x = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    if entries == "uniform":  # the default initialization of a linear layer
        x = 2 * torch.rand(rows, columns, generator=generator, dtype=torch.float64) - 1
    if planted:  # one direction, that many times the strength at which it begins to show
        left, right = (torch.randn(side, 1, generator=generator, dtype=torch.float64) for side in (rows, columns))
        x = x + planted**0.5 * (rows * columns) ** 0.25 * x.std() * left * right.T / left.norm() / right.norm()
    return x * torch.arange(1, rows + 1, dtype=torch.float64)[:, None] ** -decay


def _beyond(x: Tensor, test: Test, value: float) -> bool:
    values = gram_eigenvalues(x)
    if test == "alpha":
        return power_law(values).alpha <= value
    bulk = marchenko_pastur_bulk(values, *x.shape)
    return (bulk.distance if test == "bulk" else bulk.excess) >= value


law = Law(
    claim="The chances that noise goes beyond a value in each of three tests are those that the table gives, and "
    "entries that are uniform go beyond no more often; so at most 5 % of noise is called structured.",
    formula=r"P(\text{statistic beyond }x\mid\text{noise})=p(x),\qquad p=\min(1,4\min_ip_i)",
    assumes={
        "no planted direction": {"planted": 1.3},
        "rows of equal size": {"decay": 0.095},
        "entries of finite fourth moment": None,
    },
    source="clauset2009; johnstone2001",
    predict=predict,
    measure=measure,
    cases=(
        {"shape": (24, 96), "test": "alpha", "beyond": 2.97, "entries": "gauss"},
        {"shape": (32, 40), "test": "bulk", "beyond": 0.0638, "entries": "gauss"},
        {"shape": (64, 64), "test": "excess", "beyond": 0.07, "entries": "gauss"},
        {"shape": (64, 64), "test": "excess", "beyond": 0.07, "entries": "uniform"},
    ),
    repeats=REPEATS,
    resolution=1.6,  # a chance of 0.2, seen in 480 draws, is known to 9 %: six errors
    quantity="chance that noise goes beyond",
)
