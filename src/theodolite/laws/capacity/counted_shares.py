r"""Shares counted on n samples of k kinds cost $(k-1)/2n$ more than the entropy when they predict the next sample."""

import torch
from torch import Tensor

from theodolite.core.law import Law

REPEATS = 8000
"""Counts times kinds: the more kinds, the better one count knows its excess."""


def measure(kinds: int, samples: int, *, generator: torch.Generator, copies: int = 1) -> Tensor:
    """The excess of each of many counts, each kind counted once more than it was seen; kinds have shares as 1, 2, ..., k."""
    shares = torch.arange(1, kinds + 1, dtype=torch.float64)
    shares = shares / shares.sum()
    counts = torch.zeros(REPEATS // kinds, kinds, dtype=torch.float64)
    draws = torch.multinomial(shares.expand(len(counts), -1), samples // copies, replacement=True, generator=generator)
    counts.scatter_add_(1, draws, torch.full_like(draws, copies, dtype=torch.float64))
    told = (counts + 1) / (counts.sum(1, keepdim=True) + kinds)
    return (shares * (shares.log() - told.log())).sum(1)


law = Law(
    claim="Predicting with counted shares costs half a nat for each free share, divided by the number of samples counted: a "
    "floor of counts lies above the entropy by that much.",
    formula=r"\mathbb E\,[-\log\hat p(x)]-H(p)\to\frac{k-1}{2n},\quad\hat p=\frac{c+1}{n+k}",
    assumes={"samples drawn independently": {"copies": 2}},
    source="krichevsky1981",
    predict=lambda kinds, samples: (kinds - 1) / (2 * samples),
    measure=measure,
    cases=({"kinds": 2, "samples": 200}, {"kinds": 8, "samples": 600}, {"kinds": 20, "samples": 2000}),
    tolerance=0.1,  # three errors of the mean of so many chi-squareds are 5 to 7 %; the next order is about k/n, 1 %
    along="samples",
    quantity="loss above the entropy",
)
