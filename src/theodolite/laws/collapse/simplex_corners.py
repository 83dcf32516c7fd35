r"""Collapsed class means of length one are the columns of $\sqrt{C/(C-1)}(I-\frac1C11^\top)$ up to a rotation."""

from typing import Literal

import numpy as np
import torch
from torch.nn.functional import cross_entropy, normalize

from theodolite.core.law import Law
from theodolite.theory.collapse import simplex_corners

Norm = Literal["nuc", "fro"]
DECAY = 5e-3


def measure(classes: int, norm: Norm, *, generator: torch.Generator, rare: int = 2) -> float:
    """A norm that no rotation changes, of the centered and scaled class means where free features and a classifier end."""
    labels = torch.arange(classes).repeat_interleave(torch.tensor([2] * (classes - 1) + [rare]))
    H = torch.randn(len(labels), classes + 2, generator=generator, dtype=torch.float64).requires_grad_()
    W = torch.randn(classes, classes + 2, generator=generator, dtype=torch.float64).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [H, W], lr=1.0, max_iter=60, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimizer.zero_grad()
        value = cross_entropy(H @ W.T, labels) + 0.5 * DECAY * (W.square().sum() + H.square().sum() / 2)
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    means = torch.stack([H.detach()[labels == c].mean(0) for c in range(classes)])
    return float(torch.linalg.matrix_norm(normalize(means - means.mean(0), dim=1), norm))


law = Law(
    claim="The matrix of class means in which training with weight decay ends is, up to its scale and a rotation, the one that "
    "is written down as the corners of a simplex: it has the same singular values.",
    formula=r"\left(\tfrac{\mu_c-\mu_G}{|\mu_c-\mu_G|}\right)_c=Q\sqrt{\tfrac{C}{C-1}}\left(I-\tfrac1C11^\top\right)",
    assumes={"classes of one size": {"rare": 12}, "weight decay, and training until it rules": None},
    source="papyan2020; zhu2021",
    predict=lambda classes, norm: float(np.linalg.norm(simplex_corners(classes), norm)),
    measure=measure,
    cases=({"classes": 3, "norm": "nuc"}, {"classes": 5, "norm": "nuc"}, {"classes": 5, "norm": "fro"}),
    tolerance=1e-3,  # the search stops at a slope of 1e-9 or after 60 steps, which leaves angles known to about 1e-5
    repeats=3,
    quantity="norm of the matrix of scaled class means",
)
