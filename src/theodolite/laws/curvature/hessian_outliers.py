r"""At the start a ReLU classifier's Hessian has $C-1$ outliers, $\frac{2d}\pi$ above the next level, whatever the labels."""

import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.core.law import Law
from theodolite.measure.curvature import hessian

UNITS, SAMPLES = 64, 1200


def predict(classes: int, inputs: int) -> float:
    """From the parts of E relu^2 = 1/2: the constant, the d linear functions, and the rest: even, and so over half the units."""
    ratio = math.exp(math.lgamma(inputs / 2) - math.lgamma((inputs + 1) / 2))
    constant, linear = inputs * ratio**2 / (4 * math.pi), 0.25
    rest = 0.5 - constant - linear
    return (UNITS * constant + 2 * rest) / (UNITS * linear / inputs)


def measure(classes: int, inputs: int, *, generator: torch.Generator, activation: str = "relu") -> float:
    """The mean of the C - 1 largest eigenvalues over that of the d (C - 1) that follow, with random labels."""
    x = torch.randn(SAMPLES, inputs, generator=generator, dtype=torch.float64)
    x = x * (inputs**0.5 / x.norm(dim=1, keepdim=True))
    directions = torch.randn(inputs, UNITS // 2, generator=generator, dtype=torch.float64)
    directions = directions / directions.norm(dim=0)
    features = getattr(torch, activation)(x @ torch.cat([directions, -directions], 1))
    last = nn.Linear(UNITS, classes, bias=False, dtype=torch.float64)
    nn.init.zeros_(last.weight)
    labels = torch.randint(classes, (SAMPLES,), generator=generator)
    values = torch.linalg.eigvalsh(hessian(last, cross_entropy, (features, labels)).dense()).flip(0)
    first, second = classes - 1, (classes - 1) * inputs
    return float(values[:first].mean() / values[first : first + second].mean())


law = Law(
    claim="The outliers of a classifier's Hessian at the start are the mean of its features times the C - 1 directions that a "
    "softmax knows. They are there with random labels too: that many outliers are no sign of class structure.",
    formula=r"H=\frac1C\Big(I-\frac{11^T}C\Big)\otimes E[hh^T],\quad\frac{\lambda_{1\dots C-1}}{\lambda_C}\to\frac{1/2\pi}{1/4d}",
    assumes={
        "features whose mean is not zero": {"activation": "tanh"},
        "inputs that are white": None,
        "all classes equally likely": None,
    },
    source="sagun2017",
    predict=predict,
    measure=measure,
    cases=({"classes": 3, "inputs": 6}, {"classes": 4, "inputs": 6}, {"classes": 3, "inputs": 10}),
    full=({"classes": 5, "inputs": 10},),
    # units in pairs keep odd and even functions apart; the even ones of higher degree mix with the constant by about 1/32
    tolerance=0.04,
    repeats=6,
    quantity="first level over second level",
    along="inputs",
    erratum="The number of outliers is given as that of classes. It is one less at the start, and random labels have as many.",
    refuted=lambda **case: 1.0,
)
