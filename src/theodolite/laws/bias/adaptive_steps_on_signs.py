r"""On inputs of $\pm1$ diagonal Adagrad and Adam stay in the span of what they saw only with one example a step."""

from functools import partial

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.bias import random_rotation
from theodolite.measure.experiments import descent_weights, outside_span
from theodolite.measure.experiments.sparse_learners import Optimizer

FEATURES, EXAMPLES, PROBLEMS = 32, 8, 12
OPTIMIZERS: dict[str, Optimizer] = {
    "Adagrad": partial(torch.optim.Adagrad, lr=0.1),
    "Adam": partial(torch.optim.Adam, lr=0.05),
    "RMSprop": partial(torch.optim.RMSprop, lr=0.05),
    "Rprop": partial(torch.optim.Rprop, lr=0.05),
}


def predict(optimizer: str, examples_a_step: int, asked: str) -> Band:
    stays = asked == "outside the span" and examples_a_step == 1 and optimizer != "Rprop"
    return as_printed(optimizer, examples_a_step, asked) if stays else Band(low=0.05)


def as_printed(optimizer: str, examples_a_step: int, asked: str) -> Band:
    return Band.around(0.0, abs=1e-9)  # zero but for rounding


def measure(
    optimizer: str, examples_a_step: int, asked: str, *, generator: torch.Generator, entries: str = "signs"
) -> list[float]:
    x = torch.randn(PROBLEMS, EXAMPLES, FEATURES, generator=generator, dtype=torch.float64)
    x, y = (x.sign() if entries == "signs" else x), x[..., 0].sign()
    learned = partial(descent_weights, optimizer=OPTIMIZERS[optimizer], passes=6, batch_size=examples_a_step)
    w = learned(x, y)
    if asked == "outside the span":
        return outside_span(x, w).tolist()
    turn = random_rotation(FEATURES, generator)
    there = learned(x @ turn.T, y)  # the weights for turned data, which should be the turned weights
    return ((there - w @ turn.T).norm(dim=1) / w.norm(dim=1)).tolist()


law = Law(
    claim="With one example of signs at a time all coordinates of Adagrad, RMSprop and Adam share one rate, so the weights "
    "stay in the span of the seen examples and the lower bound for invariant learners applies; with more examples a "
    "step, or for Rprop, they leave it.",
    formula=r"x_{t,i}=\pm1,\ \nabla_{t,i}^2=(\hat y_t-y_t)^2\ \forall i\ \Rightarrow\ w_t\in\mathrm{span}(x_1,\dots,x_t)",
    assumes={"inputs of one size": {"entries": "gauss"}},
    source="warmuth2021; duchi2011",
    predict=predict,
    measure=measure,
    cases=(
        *({"optimizer": o, "examples_a_step": 1, "asked": "outside the span"} for o in OPTIMIZERS),
        *({"optimizer": o, "examples_a_step": EXAMPLES, "asked": "outside the span"} for o in ("Adagrad", "Adam")),
        *({"optimizer": o, "examples_a_step": 1, "asked": "rotated"} for o in ("Adagrad", "Adam")),
    ),
    repeats=1,
    resolution=30.0,  # of the others only that they leave the span: eight decades above rounding
    quantity="share outside the span, or change under rotation",
    erratum="Stated as 'for data of signs diagonal Adagrad and Adam are rotation invariant'. Turned data are no longer signs, "
    "so they are not; what holds is that the weights stay in the span, and that only for one example a step.",
    refuted=as_printed,
)
