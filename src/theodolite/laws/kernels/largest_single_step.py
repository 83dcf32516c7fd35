r"""The step $2m/\lambda_{\max}(\Theta)$ that theory advises from the inputs' sizes and angles alone is borne, and hardly more."""

import itertools

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import elementwise
from theodolite.theory import Mlp
from theodolite.theory.kernels import learning_rates

WIDTH, HIDDEN, C_B = 48, 2, 0.1
C_W = {"erf": 1.2, "tanh": 1.3}


STRETCH = 1.25
"""Between random networks the kernel's largest eigenvalue varies, about a mean that is the limit's: at this width by v = 0.15 for
erf and tanh. The step is one over it, whose mean is 1 + v^2 of the limit's. For ReLU, which lets half of the units through and
squares grow without bound, v is 0.39 (0.21 at four times the width), the mean eigenvalue 1.01 ± 0.04 and the mean step 1.14 ±
0.04 of the limit's in 120 networks: the prediction is right there too, but twenty networks know the step to no better than 0.1,
and no band of a quarter can hold that."""


def predict(activation: str, inputs: int, samples: int, cosine: float) -> Band:
    spec = Mlp(HIDDEN, activation, C_W[activation], C_B)
    rates = learning_rates(spec, inputs=inputs, width=WIDTH, cosine=cosine, samples=samples)
    return Band(rates.single, 2 / rates.largest * STRETCH)


def measure(
    activation: str, inputs: int, samples: int, cosine: float, *, generator: torch.Generator, gain: float = 1.0
) -> float:
    """Twice the samples over the largest eigenvalue of the Gram matrix of the gradients of all parameters."""
    common = torch.randn(inputs, generator=generator, dtype=torch.float64)
    common = common / common.norm() * inputs**0.5
    own = torch.randn(samples, inputs, generator=generator, dtype=torch.float64)
    x = cosine**0.5 * common + (1 - cosine) ** 0.5 * own
    sizes, sigma = (inputs, *(WIDTH,) * HIDDEN, 1), elementwise(activation)
    parameters: list[Tensor] = []
    for before, after in itertools.pairwise(sizes):
        weight = torch.randn(before, after, generator=generator, dtype=torch.float64)
        parameters.append(gain * (C_W[activation] / before) ** 0.5 * weight)
        parameters.append(C_B**0.5 * torch.randn(after, generator=generator, dtype=torch.float64))
    for parameter in parameters:
        parameter.requires_grad_()
    h = x
    for place in range(0, len(parameters), 2):
        h = h @ parameters[place] + parameters[place + 1]
        h = sigma(h) if place + 2 < len(parameters) else h
    slopes = [torch.autograd.grad(h[i, 0], parameters, retain_graph=True) for i in range(samples)]
    rows = torch.stack([torch.cat([g.flatten() for g in one]) for one in slopes])
    return 2 * samples / float(torch.linalg.matrix_norm(rows, 2) ** 2)


law = Law(
    claim="The mean square and the cosine of the inputs, and the sizes of the network, are enough to say which single "
    "learning rate is stable: the constant direction or the linear functions of the inputs are learned fastest.",
    formula=r"\eta<\frac{2m}{\lambda_{\max}},\qquad\frac{\lambda_{\max}}m\approx\max\Big(\Theta(c)+\frac{\Theta(1)-\Theta(c)}m,\ "
    r"\Theta'(c)(1-c)\frac{(1+\sqrt{n_0/m})^2}{n_0}+\dots\Big)",
    assumes={"weights of the variance supposed": {"gain": 1.5}},
    source="roberts2022, chapter 9; jacot2018",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "erf", "inputs": 20, "samples": 30, "cosine": 0.8},
        {"activation": "tanh", "inputs": 10, "samples": 40, "cosine": 0.5},
        {"activation": "tanh", "inputs": 6, "samples": 60, "cosine": 0.0},
    ),
    repeats=20,
    resolution=1.5,  # the band itself: below, the advice holds back (1 + sqrt(L/n))^2 = 1.45 for the spread; above, a fifth
    quantity="largest stable step",
)
