r"""A wide network trains as its linearization, with an error of order $1/n$ if smooth and about $n^{-0.6}$ for ReLU."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import descended, elementwise, linearly_descended

SAMPLES, INPUTS, STEPS, RATE = 4, 3, 18, 0.6
NETS = {"tanh": 64, "relu": 400}  # gates flip at random, smooth units move all alike


def predict(activation: str) -> Band:
    """Smooth: 1/n. ReLU: a share n^-1/2 of gates flips, whose errors add up alike (n^-1/2) or at random (n^-3/4)."""
    # so many networks leave about 0.02 to a slope over a factor 5 in width; the next order bends it by as much
    return Band(-1.2, -0.8) if activation != "relu" else Band(-0.75 - 0.1, -0.5 + 0.1)


def measure(activation: str, width: int, *, generator: torch.Generator, output_scale: str = "NTK") -> Tensor:
    sigma = elementwise(activation)
    data = torch.Generator().manual_seed(7)
    x, y = torch.randn(SAMPLES, INPUTS, generator=data), torch.randn(SAMPLES, generator=data)
    mean_field = output_scale == "mean field"
    last = 1 / width if mean_field else 1 / math.sqrt(width)
    half = torch.randn(NETS[activation], INPUTS, width // 2, generator=generator)
    signs = torch.ones(NETS[activation], width // 2, 1)
    start = torch.cat([half, half], 2), torch.cat([signs, -signs], 1)  # in pairs of opposites: outputs start at 0

    def forward(parameters: Sequence[Tensor]) -> Tensor:
        return (sigma(x @ parameters[0] / math.sqrt(INPUTS)) @ parameters[1]).squeeze(-1) * last

    rates = (RATE * (width if mean_field else 1),) * 2
    end = forward(descended(forward, start, y, rates=rates, steps=STEPS))
    line = linearly_descended(forward, start, y, rates=rates, steps=STEPS)
    rest = (y - forward(start)).square().mean(1)
    return ((end - line).square().mean(1) / rest).sqrt().double()


law = Law(
    claim="After training, a wide network and its linearization differ by an amount that falls as one over the width for "
    "smooth activations, and more slowly for ReLU, whose gates flip.",
    formula=r"\mathrm{rms}(f_T-f_T^{lin})=O(1/n)\;(\mathrm{smooth}),\quad O(n^{-0.6})\;(\mathrm{ReLU})",
    assumes={"an output of scale one over the root of the width": {"output_scale": "mean field"}},
    source="lee2019, Theorem 2.1; chizat2019",
    predict=predict,
    measure=measure,
    cases=tuple({"activation": a, "width": n} for a in ("tanh", "relu") for n in (48, 60, 76, 96, 120, 152, 192, 242)),
    full=({"activation": "tanh", "width": 4096}, {"activation": "relu", "width": 4096}),
    quantity="distance to the linearized network over the residual at the start",
    exponent="width",
    repeats=1,
)
