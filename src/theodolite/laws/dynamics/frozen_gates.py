r"""The second-order Taylor model of a one-layer ReLU network is the network with its gates frozen."""

import torch

from theodolite.construct.dynamics import OneHidden, frozen_gate_start, quadratic
from theodolite.core.law import Law
from theodolite.theory.dynamics import catapult_with_target

TARGET = 0.5


def predict(product: float, width: int, steps: int) -> float:
    output, curvature, coupling = frozen_gate_start(_net(width))
    lr = product / curvature
    path = catapult_with_target(output, curvature, target=TARGET, coupling=coupling, lr=lr, steps=steps)
    return path.outputs[-1]


def measure(product: float, width: int, steps: int, *, order: int = 2, activation: str = "relu") -> float:
    """The output after descent on the Taylor model that automatic differentiation makes; of order 0 on the network itself."""
    net = _net(width, activation)
    lr = product / frozen_gate_start(_net(width))[1]
    run = quadratic(net, net.datum, order=order).descended(
        torch.tensor([TARGET], dtype=torch.float64), lr=lr, steps=steps, watch=False
    )
    return float(run.outputs[-1])


def _net(width: int, activation: str = "relu") -> OneHidden:
    return OneHidden(1, width=width, inputs=3, activation=getattr(torch, activation))


law = Law(
    claim="Expanded to second order in its weights at the start, a ReLU network of one hidden layer is bilinear, with the gates "
    "open that are open at the start: no second derivative within a layer is left.",
    formula=r"z=\frac1{\sqrt{md}}\sum_iv_i\,(u_i\cdot x)\,1[u_i(0)\cdot x\geq0]",
    assumes={"the Taylor model, not the network": {"order": 0}, "ReLU": {"activation": "tanh"}},
    source="lewkowycz2020",
    predict=predict,
    measure=measure,
    cases=(
        {"product": 1.0, "width": 100, "steps": 5},
        {"product": 3.0, "width": 100, "steps": 8},
        {"product": 3.0, "width": 1000, "steps": 40},
    ),
    tolerance=1e-9,  # rounding, which a few steps of factors of about 2 enlarge
    quantity="output after the steps",
)
