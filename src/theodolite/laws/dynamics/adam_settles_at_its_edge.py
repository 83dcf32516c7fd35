r"""Full-batch Adam drives the preconditioned sharpness up to $(2+2\beta_1)/(1-\beta_1)\eta$ and stays there."""

import itertools

import torch
from torch import Tensor

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import late_sharpness
from theodolite.theory import Mlp
from theodolite.theory.dynamics import update_edge

NETS, LOOKS, BETAS = 24, range(339, 480, 20), (0.9, 0.99)


def predict(widths: tuple[int, ...], lr: float) -> Band:
    edge = update_edge(lr, momentum=BETAS[0], kind="averaged")
    return Band(0.9 * edge, 1.1 * edge)


def measure(
    widths: tuple[int, ...], lr: float, *, generator: torch.Generator, batch: int = 20, plain: bool = False
) -> list[float]:
    """The largest eigenvalue of some networks side by side, each the mean over the last steps."""
    spec = Mlp(widths=widths, activation="tanh", weight_variance=1.5, bias_variance=0.1)
    nets = [network(spec, 1, 1, generator=generator, dtype=torch.float64) for _ in range(NETS)]
    means, squares = ([torch.zeros_like(p) for p in nets[0].parameters()] for _ in range(2))
    steps = itertools.count(1)

    def update(slopes: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        step = next(steps)
        means[:] = [BETAS[0] * m + (1 - BETAS[0]) * g for m, g in zip(means, slopes, strict=True)]
        squares[:] = [BETAS[1] * v + (1 - BETAS[1]) * g * g for v, g in zip(squares, slopes, strict=True)]
        first, second = (1 - beta**step for beta in BETAS)
        return means, [first * ((v / second).sqrt() + 1e-8) for v in squares]

    return late_sharpness(
        nets, update, lr=lr, looks=LOOKS, products=(24, 12), batch=batch, generator=generator, plain=plain
    )


law = Law(
    claim="While full-batch Adam trains a network, the largest eigenvalue of the Hessian divided on both sides by the root of "
    "Adam's preconditioner grows until it reaches Adam's own edge, and hovers there; the plain sharpness does not settle at all.",
    formula=r"\lambda_{\max}(P_t^{-1/2}\nabla^2L\,P_t^{-1/2})\to\frac{2+2\beta_1}{(1-\beta_1)\,\eta}",
    assumes={
        "the full batch": {"batch": 19},
        "curvature as the preconditioner sees it": {"plain": True},
        "a target that takes long to learn": None,
    },
    source="cohen2022adaptive",
    predict=predict,
    measure=measure,
    cases=({"widths": (16, 16, 16), "lr": 0.006}, {"widths": (24, 24), "lr": 0.006}, {"widths": (24, 24), "lr": 0.008}),
    full=({"widths": (32, 32), "lr": 0.01},),
    repeats=1,
    quantity="preconditioned sharpness late in training",
)
