r"""The smoothed ReLU is a ReLU with its kink spread by 2k uniform variables: $1/6,7/60,\dots$ at zero, a ReLU outside."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import smoothed_relu

DRAWS = 80_000


def predict(order: int, t: float) -> Band:
    value = float(smoothed_relu(torch.tensor(t, dtype=torch.float64), order))
    return Band.around(value, abs=0.015)  # draws scatter by sqrt(2/12) at most: 80,000 know the mean to 0.0015


def measure(order: int, t: float, *, generator: torch.Generator, spread: float = 1.0) -> Tensor:
    boxes = torch.rand(DRAWS // 2, 2 * order, generator=generator, dtype=torch.float64) - 0.5
    return torch.relu(t + spread * boxes.sum(1) / order)


law = Law(
    claim="Spreading a ReLU's kink by a B-spline makes it smooth to any order near zero and leaves it a ReLU outside.",
    formula=r"\mathrm{SReLU}_k(t)=\frac{\sum_j(-1)^j\binom{2k}{j}(t+w-jh)_+^{2k+1}}{(2k+1)!\,h^{2k}}=E\,(t+U_1+\dots+U_{2k})_+,"
    r"\quad U_i\sim U[-\tfrac h2,\tfrac h2],\ h=\tfrac wk",
    assumes={"boxes of width w / k": {"spread": 1.2}},
    source="bresler2020; deboor1978",
    predict=predict,
    measure=measure,
    cases=tuple({"order": k, "t": t} for k in (1, 2, 3) for t in (-1.0, 0.0, 0.3, 1.5)),
    repeats=2,
    quantity="smoothed ReLU",
)
