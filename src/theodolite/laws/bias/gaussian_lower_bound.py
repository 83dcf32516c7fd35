r"""On Gaussian inputs an invariant learner loses at least $(1-k/d)^2$, or $1-k/d$ on fresh ones; least squares attains it."""

import torch
from torch import Tensor

from theodolite.law import Law
from theodolite.measure.sparse_learners import least_squares_weights, multiplicative_weights
from theodolite.theory.invariance import gaussian_lower_bound

SIDE, PROBLEMS = 64, 24


def predict(k: int, examples: str) -> float:
    return gaussian_lower_bound(k, SIDE, fresh=examples == "fresh")


def measure(k: int, examples: str, *, generator: torch.Generator, learner: str = "least squares") -> Tensor:
    x = torch.randn(PROBLEMS, SIDE, SIDE, generator=generator, dtype=torch.float64)
    seen, labels = x[:, :k], x[:, :k, 0]
    if learner == "least squares":
        w = least_squares_weights(seen, labels)
    else:
        w = multiplicative_weights(seen, labels, update="egu", lr=0.1, steps=60, start=1e-3 / SIDE)
    off = w.clone()
    off[:, 0] -= 1
    if examples == "fresh":
        return off.square().sum(1)  # the mean over fresh Gaussian examples, exactly
    return (x @ off[..., None])[..., 0].square().mean(1)


law = Law(
    claim="For Gaussian inputs and a target of one feature least squares has the least loss of all invariant learners: the "
    "share of unseen directions, times the share of unseen examples where the seen ones count.",
    formula=r"E\,\tfrac1d|X\hat w-Xe_1|^2=\left(1-\frac kd\right)^2,\qquad E\,|\hat w-e_1|^2=1-\frac kd",
    assumes={"a learner that treats all directions alike": {"learner": "exponentiated gradient"}},
    source="warmuth2021",
    predict=predict,
    measure=measure,
    cases=tuple({"k": k, "examples": e} for e in ("all d", "fresh") for k in (16, 32, 48)),
    full=tuple({"k": k, "examples": e} for e in ("all d", "fresh") for k in (8, 56)),
    tolerance=0.15,  # exact in mean; one loss spreads by 25 % of its mean (k = 48), three errors of 144 draws are 6 %
    repeats=6,
    quantity="mean square error",
    along="k",
)
