r"""Collapsed class means point to the corners of a simplex: their cosines are $-1/(C-1)$, they are not orthogonal."""

import torch
from torch.nn.functional import cross_entropy

from theodolite.core.law import Law
from theodolite.theory.collapse import simplex_cosine

DECAY = 5e-3


def measure(classes: int, *, generator: torch.Generator, width: int | None = None, rare: int = 2) -> float:
    """The largest cosine of two centered class means where free features and a classifier minimize loss and decay."""
    d = width or classes + 2
    labels = torch.arange(classes).repeat_interleave(torch.tensor([2] * (classes - 1) + [rare]))
    H = torch.randn(len(labels), d, generator=generator, dtype=torch.float64).requires_grad_()
    W = torch.randn(classes, d, generator=generator, dtype=torch.float64).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [H, W], lr=1.0, max_iter=60, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimizer.zero_grad()
        penalty = 0.5 * DECAY * (W.square().sum() + H.square().sum() / 2)
        value = cross_entropy(H @ W.T, labels) + penalty
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    means = torch.stack([H.detach()[labels == c].mean(0) for c in range(classes)])
    unit = torch.nn.functional.normalize(means - means.mean(0), dim=1)
    return float((unit @ unit.T)[~torch.eye(classes, dtype=torch.bool)].max())


law = Law(
    claim="Free features and a linear classifier that minimize cross-entropy with weight decay put the classes on the corners "
    "of a simplex, all equally far apart; only as the number of classes grows do the corners become orthogonal.",
    formula=r"\cos(\mu_c-\mu_G,\mu_{c'}-\mu_G)=-\frac{1}{C-1}",
    assumes={
        "at least C-1 features": {"width": 2},
        "classes of one size": {"rare": 3},
        "weight decay, and training until it rules": None,
    },
    source="papyan2020; zhu2021",
    predict=lambda classes: simplex_cosine(classes),
    measure=measure,
    cases=({"classes": 4}, {"classes": 6}, {"classes": 10}),
    tolerance=1e-3,  # the search stops at a slope of 1e-9 or after 60 steps, which leaves angles known to about 1e-5
    repeats=4,
    quantity="largest cosine of two class means",
    along="classes",
    erratum="Collapsed class means are sometimes called mutually orthogonal; measured from the global mean their cosines are "
    "-1/(C-1).",
    refuted=lambda **case: 0.0,
)
