r"""How the loss falls with examples seen, d = 128: gradient descent along $1-k/d$, multiplicative updates like $\log d/k$."""

from functools import partial

import torch
from torch import Tensor

from theodolite.construct.bias import sparse_problems
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.bias import random_rotation
from theodolite.measure.experiments import (
    gaussian_start,
    least_squares_weights,
    multiplicative_weights,
    network_outputs,
    trained_networks,
)
from theodolite.theory.bias import hadamard_lower_bound, multiplicative_loss

SIDE, PROBLEMS = 128, 16
LINES = ("gradient descent", "EGU", "squared weights")


def predict(learner: str, k: int) -> Band:
    bound = hadamard_lower_bound(k, SIDE)
    if learner == "gradient descent":
        return Band.around(bound, abs=1e-9)  # an identity
    if learner == "network":
        return Band(low=bound - 0.02)
    return Band(high=multiplicative_loss(k, SIDE))


def measure(learner: str, k: int, *, generator: torch.Generator, turned: bool = False) -> Tensor:
    x, y = sparse_problems("flipped", SIDE, PROBLEMS, generator=generator)
    if turned:
        x = x @ random_rotation(SIDE, generator).T
    seen, labels = x[:, :k], y[:, :k]
    if learner == "network":
        start = gaussian_start(PROBLEMS, (SIDE, 64, 1), activation="tanh", generator=generator)
        own = trained_networks(
            start,
            seen / SIDE**0.5,
            labels,
            activation="tanh",
            steps=300,
            optimizer=partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        )
        return (network_outputs(own, x / SIDE**0.5, "tanh") - y).square().mean(1)
    if learner == "gradient descent":
        w = least_squares_weights(seen, labels)
    else:
        update = "egu" if learner == "EGU" else "spindly"
        w = multiplicative_weights(seen, labels, update=update, lr=0.3, steps=150, initial_weight=1 / SIDE)
    return ((x @ w[..., None])[..., 0] - y).square().mean(1)


law = Law(
    claim="One of 128 features is learned from a few dozen examples by exponentiated gradient and by layers of squared weights, "
    "and only from all 128 by gradient descent; fully connected networks are no better than that.",
    formula=r"L_{\mathrm{GD}}=1-\frac{k}{d}\leq L_{\mathrm{MLP}},\quad L_{\mathrm{EGU}},L_{\mathrm{spindly}}\leq\frac{\log d}{k}",
    assumes={"the target along an axis": {"turned": True}},
    source="warmuth2021",
    predict=predict,
    measure=measure,
    cases=tuple({"learner": name, "k": k} for name in LINES for k in (20, 28, 40, 64, 96)),
    full=tuple({"learner": "network", "k": k} for k in (20, 28, 40, 64, 96)),
    repeats=1,
    quantity="mean loss over all rows",
    along="k",
)
