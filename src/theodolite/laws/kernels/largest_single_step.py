r"""How near to the edge $2m/\lambda_{\max}(\Theta)$ stand the steps that theory advises from inputs' sizes and angles alone."""

import math
from functools import cache
from typing import Literal

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, elementwise, tangent_kernels
from theodolite.theory import Mlp
from theodolite.theory.kernels import LearningRates, learning_rates

WIDTH, HIDDEN, C_B, NETS = 128, 2, 0.1, 8
C_W = {"erf": 1.2, "tanh": 1.3}


def predict(activation: str, inputs: int, samples: int, cosine: float, rates: Literal["single", "layers"]) -> float:
    """The share of the edge: of layers a half; a single step leaves room for how far random layers stretch the top directions."""
    if rates == "layers":
        return 0.5
    ratio = inputs / samples
    alike = (
        inputs * (1 + ratio) / (1 + math.sqrt(ratio)) ** 4 if cosine == 0 else 1.0
    )  # linear functions, or the constant
    return (1 + math.sqrt(max(HIDDEN, alike) / WIDTH)) ** -2


def measure(
    activation: str,
    inputs: int,
    samples: int,
    cosine: float,
    rates: Literal["single", "layers"],
    *,
    generator: torch.Generator,
    gain: float = 1.0,
) -> float:
    """Half of the largest eigenvalue that the steps give the tangent kernel over m, on inputs drawn once."""
    common = torch.randn(inputs, generator=generator)
    common = common / common.norm() * inputs**0.5
    x = cosine**0.5 * common + (1 - cosine) ** 0.5 * torch.randn(samples, inputs, generator=generator)
    ensemble = Ensemble(
        activation=elementwise(activation),
        widths=(WIDTH,) * HIDDEN,
        weight_variance=gain**2 * C_W[activation],
        bias_variance=C_B,
    )
    parts = tangent_kernels(ensemble, x, nets=NETS, weight_rate=1.0, bias_rate=1.0, generator=generator).double()
    advised = _advised(activation, inputs, samples, cosine)
    steps = [
        (layer.weight_lr, layer.bias_lr) if rates == "layers" else (advised.single,) * 2 for layer in advised.layers
    ]
    fans = (inputs, *(WIDTH,) * HIDDEN)
    scales = torch.tensor([(fan * w, b) for fan, (w, b) in zip(fans, steps, strict=True)], dtype=torch.float64)
    kernels = (scales[..., None, None] * parts).sum((1, 2))
    return float(torch.linalg.eigvalsh(kernels)[:, -1].mean()) / samples / 2


@cache
def _advised(activation: str, inputs: int, samples: int, cosine: float) -> LearningRates:
    spec = Mlp(HIDDEN, activation, C_W[activation], C_B)
    return learning_rates(spec, inputs=inputs, width=WIDTH, cosine=cosine, samples=samples)


law = Law(
    claim="The mean square and the cosine of the inputs, and the sizes of the network, are enough to say which learning rates "
    "are stable: the constant direction or the linear functions of the inputs are learned fastest.",
    formula=r"\eta<\frac{2m}{\lambda_{\max}},\qquad\frac{\lambda_{\max}}m\approx\max\Big(\Theta(c)+\frac{\Theta(1)-\Theta(c)}m,\ "
    r"\Theta'(c)(1-c)\frac{(1+\sqrt{n_0/m})^2}{n_0}+\dots\Big)",
    assumes={"weights of the variance supposed": {"gain": 1.2}},
    source="roberts2022, chapter 9; jacot2018",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "erf", "inputs": 20, "samples": 30, "cosine": 0.8, "rates": "single"},
        {"activation": "erf", "inputs": 20, "samples": 30, "cosine": 0.8, "rates": "layers"},
        {"activation": "tanh", "inputs": 10, "samples": 40, "cosine": 0.5, "rates": "single"},
        {"activation": "tanh", "inputs": 10, "samples": 40, "cosine": 0.5, "rates": "layers"},
        {"activation": "tanh", "inputs": 6, "samples": 60, "cosine": 0.0, "rates": "single"},
    ),
    # the direction of 40 inputs and layers of 128 are not the limit's: 4 % at most; 40 draws know the mean to 1 %
    tolerance=0.08,
    repeats=40,
    quantity="share of the largest stable step",
)
