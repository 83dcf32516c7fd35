r"""No network with a fully connected first layer beats $1-k/d$ on one feature of sign-flipped Hadamard rows.

For gradient descent from a Gaussian start this is a theorem. Adam and Adagrad are not rotation invariant and the theorem
does not cover them; here they are only seen to stay above the same bound.
"""

from functools import partial

import torch

from theodolite.construct.bias import sparse_problems
from theodolite.construct.bias.hadamard_data import HadamardKind
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import gaussian_start, multiplicative_weights, network_outputs, trained_networks
from theodolite.measure.experiments.sparse_learners import Optimizer
from theodolite.theory.bias import hadamard_lower_bound

NETS = 64
OPTIMIZERS: dict[str, Optimizer] = {
    "gradient descent": partial(torch.optim.SGD, lr=0.1),
    "momentum": partial(torch.optim.SGD, lr=0.05, momentum=0.9),
    "Adam": partial(torch.optim.Adam, lr=0.01),
    "Adagrad": partial(torch.optim.Adagrad, lr=0.05),
}
STEPS = {"gradient descent": 150, "momentum": 100, "Adam": 100, "Adagrad": 100}


def measure(
    optimizer: str,
    hidden: tuple[int, ...],
    activation: str,
    d: int,
    k: int,
    *,
    generator: torch.Generator,
    **change: str,
) -> list[float]:
    kind: HadamardKind = "flipped" if change.get("kind", "flipped") == "flipped" else "plain"
    x, y = sparse_problems(kind, d, NETS, generator=generator)
    if kind == "plain":
        y = x[..., 0]  # the constant feature, which a bias knows
    if change.get("learner") == "spindly":
        w = multiplicative_weights(x[:, :k], y[:, :k], update="spindlypm", lr=0.3, steps=600, initial_weight=1e-4 / d)
        outputs = (x @ w[..., None])[..., 0]
    else:
        start = gaussian_start(NETS, (d, *hidden, 1), activation=activation, generator=generator)
        own = trained_networks(
            start,
            x[:, :k] / d**0.5,
            y[:, :k],
            activation=activation,
            optimizer=OPTIMIZERS[optimizer],
            steps=STEPS[optimizer],
        )
        outputs = network_outputs(own, x / d**0.5, activation)
    return (outputs - y).square().mean(1).tolist()


law = Law(
    claim="Networks of any depth and activation whose first layer sees all inputs alike cannot learn one feature of Hadamard "
    "rows from fewer examples than features.",
    formula=r"E\,\frac{1}{d}\sum_{i\le d}(\hat y_i-y_i)^2\ge1-\frac{k}{d}",
    assumes={
        "a fully connected first layer with a start of no direction": {"learner": "spindly"},
        "labels flipped at random": {"kind": "plain"},
    },
    source="warmuth2021",
    # the mean of the nets errs; a bound in mean, not for each draw
    predict=lambda optimizer, hidden, activation, d, k: Band(low=hadamard_lower_bound(k, d) - 0.02),
    measure=measure,
    cases=tuple(
        {"optimizer": o, "hidden": h, "activation": a, "d": 32, "k": k}
        for o, h, a in (
            ("gradient descent", (16,), "tanh"),
            ("gradient descent", (16, 16, 16), "relu"),
            ("Adam", (16,), "relu"),
            ("Adagrad", (16, 16), "tanh"),
        )
        for k in (16,)
    ),
    full=tuple(
        {"optimizer": o, "hidden": h, "activation": a, "d": 128, "k": k}
        for o in OPTIMIZERS
        for h, a in (((64,), "tanh"), ((64, 64, 64), "relu"))
        for k in (32, 64, 96)
    ),
    repeats=1,
    quantity="mean loss over all rows",
)
