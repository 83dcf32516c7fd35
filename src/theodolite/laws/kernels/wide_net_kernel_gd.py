r"""Trained wide networks scatter about the kernel prediction with the mean and the variance that NTK and NNGP give."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import descended
from theodolite.theory import Mlp
from theodolite.theory.kernels import mlp_kernels, trained_prediction

WIDTH, NETS, STEPS, RATE, SAMPLES = 192, 400, 50, 0.5, 4


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(SAMPLES + 1, 3, generator=generator, dtype=torch.float64)
    return x, torch.randn(SAMPLES, generator=generator, dtype=torch.float64)


def predict(moment: str, at: str) -> Band:
    x, y = data()
    spec, new = Mlp(1, "erf", 2.0), x[:1] if at == "a training input" else x[SAMPLES:]
    train, cross, test = (mlp_kernels(spec, *points) for points in ((x[:SAMPLES],), (new, x[:SAMPLES]), (new,)))
    found = trained_prediction(train, y, time=STEPS, cross=cross, prior=test, lr=RATE, discrete=True)
    mean, variance = float(found.mean[0]), float(found.variance[0])
    # 400 networks know the mean to sqrt(V/400), the variance to sqrt(2/400) = 7 %; finite width adds a few over n to both
    if moment == "mean":
        return Band.around(mean, abs=5 * math.sqrt(variance / NETS) + 4 / WIDTH)
    return Band.around(variance, rel=0.35 + 8 / WIDTH)


def measure(moment: str, at: str, *, generator: torch.Generator, output_scale: str = "NTK") -> Tensor:
    x, y = (tensor.float() for tensor in data())
    start = (torch.randn(NETS, 3, WIDTH, generator=generator), torch.randn(NETS, WIDTH, 1, generator=generator))
    last = math.sqrt(2) / (WIDTH if output_scale == "mean field" else math.sqrt(WIDTH))

    def answer(parameters: Sequence[Tensor], inputs: Tensor) -> Tensor:
        return (torch.erf(inputs @ parameters[0] * math.sqrt(2 / 3)) @ parameters[1]).squeeze(-1) * last

    end = descended(lambda p: answer(p, x[:SAMPLES]), start, y, rates=(RATE, RATE), steps=STEPS)
    found = answer(end, x[SAMPLES:] if at == "a new input" else x[:1])[:, 0].double()
    return found if moment == "mean" else (found - found.mean()).square() * (NETS / (NETS - 1))


law = Law(
    claim="Over random initializations the answers of a wide network after any number of gradient steps are Gaussian with a "
    "mean given by the tangent kernel and a variance given by it and the kernel of the untrained network.",
    formula=r"E f_t=Ay,\quad\mathrm{Var}f_t=K_{xx}-AK_{Xx}-K_{xX}A^{T}+AK_{XX}A^{T},\quad "
    r"A=\Theta_{xX}\Theta^{-1}(1-(1-\frac{\eta}{m}\Theta)^t)",
    assumes={"an output of scale one over the root of the width": {"output_scale": "mean field"}},
    source="lee2019, section 2.3",
    predict=predict,
    measure=measure,
    cases=(
        {"moment": "mean", "at": "a new input"},
        {"moment": "variance", "at": "a new input"},
        {"moment": "mean", "at": "a training input"},
    ),
    repeats=1,
    quantity="answer of trained networks",
)
