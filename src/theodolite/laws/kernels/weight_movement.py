r"""While a wide two-layer network trains, no weight moves by more than $2\sqrt2\,m\sqrt{L(0)}/(\lambda_0\sqrt n)$."""

from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import descended
from theodolite.theory import Activation
from theodolite.theory.kernels import weight_movement_bound

STEPS = 120
TARGETS = (0.3, -0.3, 0.3)


def predict(width: int, samples: int) -> Band:
    # Orthogonal unit inputs: the kernel of the layer that trains is diagonal, with E a^2 = 1/3 times E sigma'^2
    smallest = Activation("tanh").slope_moment(1.0) / 3
    loss = sum(y * y for y in TARGETS[:samples]) / (2 * samples)
    return Band(high=weight_movement_bound(loss, smallest=smallest, samples=samples, width=width))


def measure(width: int, samples: int, *, generator: torch.Generator, scale: str = "1/sqrt n") -> float:
    """Units in pairs of opposite output weights, so that outputs start at 0; output weights are frozen."""
    w = torch.randn(1, samples, width // 2, generator=generator).repeat(1, 1, 2)
    a = torch.rand(width // 2, generator=generator) * 2 - 1
    a = torch.cat([a, -a])
    size = width**-0.5 if scale == "1/sqrt n" else 1 / width

    def forward(parameters: Sequence[Tensor]) -> Tensor:
        return size * (torch.tanh(parameters[0]) * a).sum(-1)  # inputs are the unit vectors

    end = descended(
        forward, [w], torch.tensor([TARGETS[:samples]]), rates=(samples / (size * size * width),), steps=STEPS
    )
    return float((end[0] - w).norm(dim=1).max())


law = Law(
    claim="Training a wide network moves each of its weights by an amount that falls as one over the root of the width.",
    formula=r"|w_k(t)-w_k(0)|\leq\frac{2\sqrt{2}\,m\sqrt{L(0)}}{\lambda_0\sqrt{n}}",
    assumes={"an output of scale one over the root of the width": {"scale": "1/n"}},
    source="du2019, Lemma 3.3",
    predict=predict,
    measure=measure,
    cases=({"width": 1024, "samples": 3}, {"width": 1024, "samples": 1}, {"width": 4096, "samples": 1}),
    quantity="largest movement of a weight",
    along="width",
)
