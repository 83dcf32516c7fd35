r"""Two combinations of output and curvature are each multiplied by a square at every step, so they never change sign."""

import torch

from theodolite.construct.dynamics import OneHidden, frozen_gate_start, quadratic
from theodolite.core.law import Law
from theodolite.theory.dynamics import catapult_with_target

TARGET = 0.3


def predict(product: float, steps: int, sign: int) -> float:
    z, lam, c = frozen_gate_start(_net())
    lr = product / lam
    path = catapult_with_target(z, lam, target=TARGET, coupling=c, lr=lr, steps=steps - 1)
    r = path.outputs[-1] - TARGET
    return float((1 - sign * lr * c**0.5 * r) ** 2)


def measure(product: float, steps: int, sign: int, *, order: int = 2) -> float:
    """The factor of P (sign 1) or Q (sign -1) over the last step of descent."""
    net = _net()
    _, lam, c = frozen_gate_start(net)
    run = quadratic(net, net.datum, order=order).descended(
        torch.tensor([TARGET], dtype=torch.float64), lr=product / lam, steps=steps
    )
    ends = [run.curvatures[k] / c + sign * 2 * float(run.outputs[k]) / c**0.5 for k in (steps - 1, steps)]
    return float(ends[1] / ends[0])


def _net() -> OneHidden:
    return OneHidden(3, width=50, inputs=3)


law = Law(
    claim="P and Q, half of curvature over coupling plus and minus output over its root, are multiplied each step by squares; so "
    "the curvature never falls below 2 sqrt(c) |z|, and a run that fits y keeps at least 2 sqrt(c) |y|.",
    formula=r"P,Q=\tfrac12\Big(\frac\lambda c\pm\frac{2z}{\sqrt c}\Big),\qquad "
    r"P'=(1-\gamma\sqrt c\,r)^2P,\quad Q'=(1+\gamma\sqrt c\,r)^2Q",
    assumes={"frozen gates": {"order": 0}},
    source="lewkowycz2020",
    predict=predict,
    measure=measure,
    cases=tuple({"product": p, "steps": k, "sign": s} for p, k in ((1.0, 2), (3.0, 5)) for s in (1, -1)),
    full=({"product": 3.5, "steps": 12, "sign": 1},),
    tolerance=1e-9,  # rounding, enlarged over a few steps
    quantity="factor of a step",
)
