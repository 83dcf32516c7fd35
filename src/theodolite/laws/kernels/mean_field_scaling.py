r"""With outputs of scale $1/n$, rates $\eta n$ for input weights and $\eta/n$ for output weights learn features at any width."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import batch_kernels, descended

SAMPLES, INPUTS, NETS, STEPS, RATE = 4, 3, 96, 30, 0.5
POWERS = {"stable rate of input weights": 1.0, "stable rate of output weights": -1.0, "change of a hidden unit": 0.0}


def measure(what: str, width: int, *, generator: torch.Generator, spread: str = "1/n") -> Tensor:
    data = torch.Generator().manual_seed(7)
    x, y = torch.randn(SAMPLES, INPUTS, generator=data), torch.randn(SAMPLES, generator=data)
    scale = 1 / width if spread == "1/n" else 1 / math.sqrt(width)
    start = (
        torch.randn(NETS, INPUTS, width, generator=generator),
        torch.randn(NETS, width, 1, generator=generator) * scale,
    )

    def hidden(weights: Tensor) -> Tensor:
        return torch.tanh(x @ weights / math.sqrt(INPUTS))

    def forward(parameters: Sequence[Tensor]) -> Tensor:
        return (hidden(parameters[0]) @ parameters[1]).squeeze(-1)

    if what == "change of a hidden unit":
        rates = (RATE * width, RATE / width) if spread == "1/n" else (RATE, RATE / width)
        end = descended(forward, start, y, rates=rates, steps=STEPS)
        return (hidden(end[0]) - hidden(start[0])).square().mean((1, 2)).sqrt().double()
    own = (1.0, 0.0) if "input" in what else (0.0, 1.0)
    kernels, _ = batch_kernels(forward, start, rates=own)
    return 2 * SAMPLES / torch.linalg.eigvalsh(kernels.double())[:, -1]


law = Law(
    claim="In the mean-field (maximal update) parametrization, output weights spread as 1/n, input weights may and must move "
    "n times faster and output weights n times slower than at width one; then features change by the same amount at "
    "every width.",
    formula=r"a_k\sim N(0,n^{-2}):\quad\eta_{in}\propto n,\quad\eta_{out}\propto\frac{1}{n},\quad|h_T-h_0|=O(1)",
    assumes={"output weights of spread one over the width": {"spread": "1/sqrt n"}},
    source="yang2021; mei2018",
    # 96 networks a width leave up to 0.015 to a slope over a factor 8; corrections of relative order 1/sqrt n bend by 0.04
    predict=lambda what: Band.around(POWERS[what], abs=0.15),
    measure=measure,
    cases=tuple({"what": what, "width": n} for what in POWERS for n in (64, 91, 128, 181, 256, 362, 512)),
    full=tuple({"what": what, "width": 4096} for what in POWERS),
    quantity="rates and features",
    exponent="width",
    repeats=1,
    erratum="Lecture notes give rates of order one for all layers; plain gradient descent then diverges as soon as the "
    "width exceeds a few hundred, for the output weights' stable rate falls as 1/n.",
    refuted=lambda **case: Band(-0.15, 0.15),
)
