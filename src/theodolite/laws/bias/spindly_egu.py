r"""Gradient descent on $u$ with $w=u^2$ follows exponentiated gradient on $w$, the closer the smaller the step."""

import torch
from torch import Tensor

from theodolite.construct.bias import sparse_problems
from theodolite.core.law import Law
from theodolite.measure.experiments import multiplicative_weights

TIME, PROBLEMS, SIDE, SEEN = 4.0, 12, 32, 12


def distance(x: Tensor, y: Tensor, update: str, lr: float, lr_factor: float) -> Tensor:
    """The distance of the two solutions at one time, over the norm of one, in each problem."""
    two_signed = "pm" if update == "two signs" else ""
    steps = round(TIME / lr)
    found = [
        multiplicative_weights(x, y, update=name + two_signed, lr=own, steps=steps, initial_weight=1 / SIDE)
        for name, own in (("egu", lr), ("spindly", lr_factor * lr))
    ]
    return torch.as_tensor((found[0] - found[1]).norm(dim=1) / found[0].norm(dim=1))


def measure(update: str, lr: float, *, generator: torch.Generator, lr_factor: float = 1.0) -> list[float]:
    x, y = sparse_problems("flipped", SIDE, PROBLEMS, generator=generator)
    x, y = x[:, :SEEN], y[:, :SEEN]
    return (distance(x, y, update, lr, lr_factor) / distance(x, y, update, lr / 2, lr_factor)).tolist()


law = Law(
    claim="Squaring the weights turns gradient descent into the multiplicative update: their paths differ by the first order "
    "of the step, and not at all in the limit of small steps.",
    formula=r"u'=u\left(1-\frac{\eta}{2}x(u^2\cdot x-y)\right),\ w=u^2:\ \log w'=\log w-\eta x(w\cdot x-y)+O(\eta^2)",
    assumes={"four times the step for the weights as for their roots": {"lr_factor": 0.9976}},
    source="amid2020",
    predict=lambda **case: 2.0,
    measure=measure,
    cases=tuple({"update": u, "lr": lr} for u in ("one sign", "two signs") for lr in (0.2, 0.1, 0.05)),
    tolerance=0.05,  # the second order of the step changes the ratio by less than lr / 4
    repeats=1,
    along="lr",
    quantity="distance of the weights over that at half the step",
)
