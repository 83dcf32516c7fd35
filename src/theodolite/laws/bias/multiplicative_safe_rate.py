r"""At a rate of $1/(X^2UW_d)$, $W_d\approx\log d$, every step of exponentiated gradient brings it nearer to the target."""

import math

import torch

from theodolite.construct.bias import sparse_problems
from theodolite.construct.bias.hadamard_data import HadamardKind
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.optim import EGU

PROBLEMS, PASSES = 8, 2


def measure(kind: HadamardKind, d: int, *, generator: torch.Generator, relative_lr: float | None = None) -> list[float]:
    """The largest rise of the relative entropy to the target over examples one by one, zero if none, in each problem."""
    x, y = sparse_problems(kind, d, PROBLEMS, generator=generator)
    target = x.new_zeros(PROBLEMS, d)
    target[:, 0] = 1.0
    largest = float(x.abs().max())
    w = torch.nn.Parameter(torch.full((PROBLEMS, d), 1 / d, dtype=torch.float64))
    room = 1 + math.log(d)
    for _ in range(60):  # W = 1 + log d + log W, a contraction
        room = 1 + math.log(d) + math.log(room)
    optimizer = EGU([w], lr=(1 / room if relative_lr is None else relative_lr) / largest**2)
    rises, before = [], None
    for place in range(PASSES * d):
        row, label = x[:, place % d], y[:, place % d]
        w.grad = ((row * w.detach()).sum(1) - label)[:, None] * row
        optimizer.step()
        entropy = w.detach().sum(1) - w.detach()[:, 0].log()
        if before is not None:
            rises.append(entropy - before)
        before = entropy
    return torch.stack(rises).nan_to_num(1e6).amax(0).clamp(0.0, 1e6).tolist()


law = Law(
    claim="With the learning rate divided by the largest norm the weights can reach, the relative entropy between target and "
    "weights falls at every example, whatever the signs of the inputs.",
    formula=r"\eta=\frac{1}{X^2UW_d},\ W_d-1-\log W_d=\log d\ \Rightarrow\ D(u,w_{t+1})\le D(u,w_t)",
    assumes={"room for the weights to grow": {"relative_lr": 4.0 / 3.0}, "labels that the target explains": None},
    source="kivinen1997",
    predict=lambda **case: Band.around(0.0, abs=1e-12),  # rounding of a sum of d logarithms of order ten
    measure=measure,
    cases=tuple({"kind": kind, "d": d} for kind in ("flipped", "signs", "gauss") for d in (32, 128)),
    repeats=1,
    quantity="largest rise of the relative entropy",
)
