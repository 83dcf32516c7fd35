r"""The log of a random ReLU network's squared gradient has mean and variance of order depth over width, exactly known."""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.experiments import Ensemble, drawn_gradients
from theodolite.theory.propagation import log_gradient_moments

NETS = 1200


def without_the_inputs(inputs: int, widths: tuple[int, ...], entry: bool, order: int) -> float:
    spread = 5 * sum(1 / n for n in widths)
    return spread if order == 2 else -spread / 2 + math.log(inputs / 2 if entry else 0.5)  # on the scale of the mean


def measure(
    inputs: int, widths: tuple[int, ...], entry: bool, order: int, *, generator: torch.Generator, copies: int = 1
) -> Estimate:
    ensemble = Ensemble(torch.relu, widths, weight_variance=2.0, bias_variance=0.2, copies=copies)
    gradient, _ = drawn_gradients(ensemble, torch.linspace(-1, 1.5, inputs)[None], nets=NETS, generator=generator)
    g = gradient[:, 0].double()
    r = g[:, 0].square() * inputs / 2 if entry else g.square().sum(1) / 2
    logs = r[r > 0].log()
    centered = logs if order == 1 else (logs - logs.mean()).square()
    return Estimate(float(centered.mean()), float(centered.std()) / math.sqrt(len(logs)))


law = Law(
    claim="The squared gradient over its mean is a product of independent chi-squared factors, one a layer, so between draws "
    "of the weights its size is about log-normal, and both moments of its logarithm are exact sums over layers.",
    formula=r"\tfrac{1}{2}\|\nabla z\|^2=\frac{\chi^2_{n_0}}{n_0}\prod_{l=1}^L\frac{2S_l}{n_l}\approx e^{N(-\beta/2,\beta)},"
    r"\quad\beta=5\sum_l\frac{1}{n_l}+\frac{2}{n_0}",
    assumes={"units independent given the layer in front": {"copies": 2}},
    source="hanin2018; hanin2020products",
    predict=lambda inputs, widths, entry, order: log_gradient_moments(inputs, widths, entry=entry)[order - 1],
    measure=measure,
    cases=(
        {"inputs": 8, "widths": (16,) * 4, "entry": False, "order": 1},
        {"inputs": 8, "widths": (16,) * 4, "entry": False, "order": 2},
        {"inputs": 8, "widths": (16,) * 4, "entry": True, "order": 1},
        {"inputs": 8, "widths": (16,) * 4, "entry": True, "order": 2},
    ),
    full=({"inputs": 20, "widths": (20,) * 10, "entry": False, "order": 2},),
    tolerance=0.16,  # exact law: 8 x 1200 logarithms; their mean is known to 1.7 % of itself, their variance to 2.5 %
    quantity="moment of the log of the squared gradient over its mean",
    erratum="Lecture notes give a single derivative the law exp N(-b/2, b), b = 5 sum 1/n, without the mean 2/n_0 and without "
    "the chi-squared of one degree, whose log variance of 4.93 exceeds that of many layers.",
    refuted=without_the_inputs,
)
