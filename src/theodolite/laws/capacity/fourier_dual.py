r"""Gaussian frequencies give the labels back through a Gaussian kernel: $E\,F(\xi)e^{-i\xi\cdot x_j}=(Ky)_j$."""

import math

import torch
from torch import Tensor

from theodolite.construct.capacity import separated_pairs
from theodolite.core.law import Law
from theodolite.theory.capacity import dual_kernel, dual_scale

SAMPLES, THETA, DRAWS = 20, 0.5, 20_000


def points() -> tuple[Tensor, Tensor]:
    """Pairs at distance 1/2; labels that agree within half of the pairs, so that the kernel's other entries are seen."""
    x = separated_pairs(SAMPLES, 6, theta=THETA, generator=torch.Generator().manual_seed(5))
    return x, torch.tensor([1.0, 1.0, -1.0, -1.0] * (SAMPLES // 4), dtype=torch.float64)


def predict(margin: float) -> float:
    x, y = points()
    return float(y @ dual_kernel(x, scale=dual_scale(SAMPLES, THETA, margin=margin)) @ y) / SAMPLES


def measure(margin: float, *, generator: torch.Generator, frequencies: str = "normal") -> Tensor:
    x, y = points()
    drawn = torch.randn(DRAWS, x.shape[1], generator=generator, dtype=torch.float64)
    width = math.sqrt(2 * margin * math.log(SAMPLES)) / THETA  # what was asked for, not what the prediction makes of it
    xi = width * (drawn.sign() if frequencies == "signs" else drawn)
    angles = xi @ x.T
    transform = torch.complex(torch.cos(angles) @ y, torch.sin(angles) @ y)
    back = torch.real(transform[:, None] * torch.exp(torch.complex(torch.zeros_like(angles), -angles)))
    return back @ y / SAMPLES


law = Law(
    claim="The labels' transform at random Gaussian frequencies gives them back, blurred by the Gaussian kernel; sharply "
    "once the frequencies are wide enough for the separation.",
    formula=r"E_{\xi\sim N(0,\sigma^2I)}\,F(\xi)e^{-i\xi\cdot x_j}=(Ky)_j,\quad K_{jk}=e^{-\sigma^2|x_j-x_k|^2/2},"
    r"\quad\sigma=\sqrt{2c\log n}/\theta\Rightarrow K_{jk}\le n^{-c}",
    assumes={"Gaussian frequencies": {"frequencies": "signs"}},
    source="rahimi2007; bresler2020",
    predict=predict,
    measure=measure,
    cases=({"margin": 0.05}, {"margin": 0.25}, {"margin": 1.0}),
    repeats=2,
    tolerance=0.04,  # |F|^2 scatters as much as it is: 40,000 draws know it to 0.5 %, three errors 1.5 %, and as much room
    quantity="labels got back, along the labels",
    along="margin",
)
