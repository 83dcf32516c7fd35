r"""Under a fixed kernel the loss along an eigenvector falls as $(1-\gamma\lambda)^{2t}$, slowest for the least $\lambda$."""

import math

import torch

from theodolite.core.law import Law
from theodolite.theory.kernels import decay_factor

SPECTRUM = (0.2, 0.5, 1.0, 2.0)
STEP = 0.4


def measure(steps: int, *, start: str = "slowest direction", model: str = "linear") -> float:
    """The loss over that at the start, of a model with features of a known spectrum, trained by autograd."""
    size, generator = len(SPECTRUM), torch.Generator().manual_seed(1)
    left, right = (torch.linalg.qr(torch.randn(n, size, generator=generator, dtype=torch.float64)).Q for n in (size, 7))
    features = left @ torch.diag(torch.tensor(SPECTRUM, dtype=torch.float64).sqrt()) @ right.T  # (samples, features)
    theta = torch.zeros(7, dtype=torch.float64, requires_grad=True)
    target = left[:, 0] if start == "slowest direction" else left.sum(1)
    losses = []
    for _ in range(steps + 1):
        z = features @ (theta if model == "linear" else theta.sinh())
        loss = 0.5 * (z - target).square().sum()
        losses.append(loss.item())
        (gradient,) = torch.autograd.grad(loss, theta)
        theta = (theta - STEP * gradient).detach().requires_grad_()
    return losses[-1] / losses[0]


law = Law(
    claim="When outputs are linear in the parameters the kernel stays, and the slowest part of the loss decays by the factor "
    "(1 - step times smallest eigenvalue) squared in each step.",
    formula=r"L(t)=(1-\gamma\lambda_0)^{2t}L(0)\leq e^{-2\gamma\lambda_0t}L(0)",
    assumes={
        "an error along the slowest direction": {"start": "all directions"},
        "outputs linear in the parameters": {"model": "sinh"},
    },
    source="du2019; lee2019",
    predict=lambda steps: decay_factor(STEP, eigenvalue=SPECTRUM[0], steps=steps),
    measure=measure,
    cases=({"steps": 5}, {"steps": 10}, {"steps": 20}),
    along="steps",
    tolerance=1e-9,  # an identity: rounding only
    quantity="loss over that at the start",
    erratum="Lecture notes lose the t in the exponent: e^(-2 gamma lambda_0) for every time.",
    refuted=lambda **case: math.exp(-2 * STEP * SPECTRUM[0]),
)
