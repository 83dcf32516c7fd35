r"""With any fixed features a predictor linear in the labels loses at least $1-k/d$ on average over the d Hadamard targets."""

import torch
from torch import Tensor

from theodolite.construct.bias import sparse_problem
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import multiplicative_weights
from theodolite.theory.bias import hadamard_lower_bound

SIDE, SEEN = 32, 12
ATTAIN = ("Hadamard rows", "one-hot")


def predict(features: str) -> Band:
    bound = hadamard_lower_bound(SEEN, SIDE)
    return Band.around(bound, abs=1e-9) if features in ATTAIN else Band(low=bound - 1e-9)  # rounding


def feature_map(name: str, x: Tensor, generator: torch.Generator) -> Tensor:
    """Features (d, m) of all rows, chosen before any label is known."""
    if name in ATTAIN:
        return x if name == "Hadamard rows" else torch.eye(SIDE, dtype=x.dtype)
    width = 2 * SIDE
    weight = torch.randn(SIDE, width, generator=generator, dtype=torch.float64) / SIDE**0.5
    return {
        "random": torch.randn(SIDE, width, generator=generator, dtype=torch.float64),
        "ReLU features": torch.relu(x @ weight),
        "cosine features": torch.cos(2 * x @ weight),
    }[name]


def measure(features: str, *, generator: torch.Generator, learner: str = "least squares") -> list[float]:
    """The mean over all targets and rows, for several draws."""
    found = []
    for _ in range(4 if learner == "exponentiated gradient" else 10):
        x = sparse_problem("plain", SIDE, SEEN, generator=generator).x
        if learner == "exponentiated gradient":
            seen = x[:SEEN].expand(SIDE, -1, -1)
            w = multiplicative_weights(seen, x[:SEEN].T, update="egu", lr=0.3, steps=100, initial_weight=1e-3 / SIDE)
            found.append(float((x @ w.T - x).square().mean()))
            continue
        phi = feature_map(features, x, generator)
        predictor = phi @ torch.linalg.pinv(phi[:SEEN])  # (d, k): linear in whatever the labels are
        found.append(float((predictor @ x[:SEEN] - x).square().mean()))
    return found


law = Law(
    claim="No feature map helps least squares, a kernel machine, or any predictor that is linear in its labels, to learn all d "
    "parities at once: what it finds has rank at most k, and a Hadamard matrix has no small singular value.",
    formula=r"\tfrac{1}{d^2}\|(P-I)H\|_F^2=\tfrac{1}{d}\|P-I\|_F^2\ge1-\frac{k}{d},\qquad\mathrm{rank}\,P\le k",
    assumes={"linear in the labels": {"learner": "exponentiated gradient"}},
    source="warmuth2005",
    predict=predict,
    measure=measure,
    cases=tuple({"features": f} for f in (*ATTAIN, "random", "ReLU features", "cosine features")),
    repeats=1,
    quantity="mean loss over all targets and rows",
)
