r"""Least squares, and so gradient descent from zero, loses exactly $1-k/d$ on Hadamard rows, whatever the target."""

import torch

from theodolite.construct.bias import sparse_problems
from theodolite.construct.bias.hadamard_data import HadamardKind
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import least_squares_weights
from theodolite.theory.bias import hadamard_lower_bound, unflipped_lower_bound

SIDE = 128


def measure(kind: HadamardKind, k: int, *, generator: torch.Generator, orthogonal: bool = True) -> list[float]:
    x, y = sparse_problems(kind, SIDE, 4, generator=generator)
    if not orthogonal:
        x = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        y = x[..., 0]
    w = least_squares_weights(x[:, :k], y[:, :k])
    return ((x @ w[..., None])[..., 0] - y).square().mean(1).tolist()


law = Law(
    claim="On the rows of a Hadamard matrix least squares predicts nothing of what it has not seen: its mean loss over all "
    "rows is the share of the unseen ones, with signs flipped or not.",
    formula=r"\frac{1}{d}\sum_{i\le d}(\hat y_i-y_i)^2=1-\frac{k}{d}",
    assumes={"orthogonal rows": {"orthogonal": False}},
    source="warmuth2021",
    predict=lambda kind, k: Band.around(hadamard_lower_bound(k, SIDE), abs=1e-9),  # an identity: rounding
    measure=measure,
    cases=tuple({"kind": kind, "k": k} for kind in ("flipped", "permuted") for k in (4, 32, 64, 96, 120)),
    repeats=1,
    quantity="mean loss over all rows",
    along="k",
    erratum="The published abstract gives 1 - k/(d-1). That is the bound for every invariant learner where signs are not "
    "flipped, attained by guessing that labels sum to zero; least squares from zero does not guess so and stays at 1 - k/d.",
    refuted=lambda kind, k: Band.around(unflipped_lower_bound(k, SIDE), abs=1e-9),
)
