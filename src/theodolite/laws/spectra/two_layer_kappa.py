r"""Outputs decay at most as fast as hidden features and last weights together, whatever the nonlinearity."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import condition_number
from theodolite.theory.spectra import two_layer_exponent_bound

HIDDEN, OUTPUTS = 20, 40


def predict(hidden: float, weights: float) -> Band:
    bound = two_layer_exponent_bound(hidden, weights, hidden_rank=HIDDEN, weight_rank=HIDDEN, rank=HIDDEN)
    return Band(high=bound + 1e-9)  # rounding


def rescaled(matrix: Tensor, exponent: float) -> Tensor:
    """The matrix with its singular values replaced by a power law of that end-point exponent."""
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    rank = torch.arange(1, len(values) + 1, dtype=torch.float64)
    return (left * rank ** (-exponent / 2)) @ right


def measure(hidden: float, weights: float, *, generator: torch.Generator, samples: int = 100) -> float:
    x = torch.randn(samples, 30, generator=generator, dtype=torch.float64)
    first = torch.randn(30, HIDDEN if samples > HIDDEN else 200, generator=generator, dtype=torch.float64)
    features = rescaled(torch.relu(x @ first), hidden)
    last = torch.randn(
        first.shape[1], OUTPUTS if samples > HIDDEN else samples, generator=generator, dtype=torch.float64
    )
    output = features @ rescaled(last, weights)
    return 2 * math.log(condition_number(output)) / math.log(min(output.shape))


law = Law(
    claim="The end-point exponent of a two-layer network's outputs is at most that of its hidden features plus its weights'.",
    formula=r"a_Z\le a_{\varphi(Y)}\log_{r_Z}r_{\varphi(Y)}+a_{W_2}\log_{r_Z}r_{W_2}",
    assumes={"at least as many samples or outputs as hidden units": {"samples": 20}},
    source="horn2013",
    predict=predict,
    measure=measure,
    cases=tuple({"hidden": h, "weights": w} for h, w in ((0.0, 0.0), (0.5, 1.0), (1.0, 0.5), (2.0, 2.0))),
    quantity="exponent of the outputs",
)
