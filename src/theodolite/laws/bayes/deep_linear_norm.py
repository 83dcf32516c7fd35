r"""The weights of a random deep linear network have $E\ln\|\theta\|=\frac{1}{2}\sum_l[\psi(\frac{n_l}{2})+\ln\frac{2}{n_l}]$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import product_log_norms
from theodolite.theory.bayes import log_norm_moments

NETS = 300


def measure(
    width: int, hidden_layers: int, *, generator: torch.Generator, copies: int = 1, gated: bool = False
) -> Tensor:
    sizes = (width,) * (hidden_layers + 1)
    return product_log_norms(sizes, nets=NETS, generator=generator, copies=copies, gated=gated)


law = Law(
    claim="The squared norm of a product of L + 1 Gaussian matrices with one output is a product of chi-squared variables "
    "over their means, so its logarithm has exact moments: mean and variance grow as depth over width.",
    formula=r"\|\theta\|^2=\prod_{l=0}^L\chi^2_{n_l}/n_l,\qquad "
    r"E\ln\|\theta\|=\tfrac{1}{2}\sum_{l=0}^L\left[\psi(\tfrac{n_l}{2})+\ln\tfrac{2}{n_l}\right]\approx-\frac{L+1}{2n}",
    assumes={"units independent": {"copies": 2}, "no nonlinearity": {"gated": True}},
    source="hanin2023",
    predict=lambda width, hidden_layers: log_norm_moments((width,) * (hidden_layers + 1))[0],
    measure=measure,
    cases=({"width": 8, "hidden_layers": 4}, {"width": 12, "hidden_layers": 12}, {"width": 20, "hidden_layers": 10}),
    full=({"width": 50, "hidden_layers": 50},),
    tolerance=0.2,  # exact law: 8 x 300 logarithms of variance about their mean, known to 4 % where the mean is -0.3
    quantity="mean log norm of the weights",
    erratum="Lecture notes give the chi-squared factors half their variance and leave one of them out: L / 4n instead of "
    "(L + 1) / 2n.",
    refuted=lambda width, hidden_layers: -hidden_layers / (4 * width),
)
