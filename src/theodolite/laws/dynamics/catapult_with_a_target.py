r"""With a target the curvature of the frozen-gate model obeys $\lambda'=\lambda+\gamma^2cr^2\lambda-4\gamma crz$."""

import torch

from theodolite.construct.dynamics import OneHidden, frozen_gate_start, quadratic
from theodolite.core.law import Law
from theodolite.theory.dynamics import catapult_with_target


def predict(product: float, target: float, steps: int) -> float:
    output, curvature, coupling = frozen_gate_start(_net())
    lr = product / curvature
    path = catapult_with_target(output, curvature, target=target, coupling=coupling, lr=lr, steps=steps)
    return path.curvatures[-1]


def without_output(product: float, target: float, steps: int) -> float:
    r"""$\lambda'=\lambda+\gamma cr^2(\gamma\lambda-4/r)$, the output lost from $4z/r$."""
    z, lam, c = frozen_gate_start(_net())
    lr = product / lam
    for _ in range(steps):
        r = z - target
        if abs(z) + abs(lam) > 1e50:  # it runs away
            break
        z, lam = target + r * (1 - lr * lam + c * lr**2 * z * r), lam + lr * c * r**2 * (lr * lam - 4 / r)
    return lam


def measure(product: float, target: float, steps: int, *, order: int = 2) -> float:
    """The tangent kernel after descent on the Taylor model (of order 0: on the network itself)."""
    net = _net()
    lr = product / frozen_gate_start(net)[1]
    run = quadratic(net, net.datum, order=order).descended(
        torch.tensor([target], dtype=torch.float64), lr=lr, steps=steps, watch=False
    )
    return run.curvatures[-1]


def _net() -> OneHidden:
    return OneHidden(2, width=60, inputs=4)


law = Law(
    claim="Output and curvature of a ReLU network with frozen gates on one datum follow two exact recursions for any target and "
    "width; with residual and output of one sign the curvature falls while step times curvature is below 4.",
    formula=r"r'=r(1-\gamma\lambda+c\gamma^2zr),\qquad\lambda'=\lambda+\gamma^2cr^2\lambda-4\gamma c\,rz",
    assumes={"frozen gates": {"order": 0}},
    source="lewkowycz2020, section 2",
    predict=predict,
    measure=measure,
    cases=(
        {"product": 1.0, "target": 0.7, "steps": 1},
        {"product": 3.0, "target": 0.7, "steps": 6},
        {"product": 3.5, "target": -1.0, "steps": 6},
    ),
    full=({"product": 2.5, "target": 0.7, "steps": 50},),
    tolerance=1e-9,  # rounding, which a few steps of factors of about 3 enlarge
    quantity="curvature after the steps",
    erratum="The recursion is found with 4/(z - y) in place of 4z/(z - y): one step at unit step size then misses most of the "
    "change.",
    refuted=without_output,
)
