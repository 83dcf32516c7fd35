r"""Averaged over the model's own labels the Hessian of the log-likelihood loss is the Fisher matrix, not its inverse."""

import torch
from torch.nn.functional import cross_entropy, one_hot

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.curvature import hessian, label_gradients
from theodolite.theory import Mlp


def measure(activation: str, *, generator: torch.Generator, labels: str = "own") -> float:
    """The cosine, as of vectors, between the Hessian and the second moment of the gradients over the model's labels."""
    spec = Mlp(widths=(6,), activation=activation, weight_variance=2.0, bias_variance=0.1)
    model = network(spec, 4, 3, generator=generator, dtype=torch.float64)
    x = 2 * torch.randn(6, 4, generator=generator, dtype=torch.float64)
    gradients, p = label_gradients(model, x)  # for every label
    rows = (p / len(x)).sqrt()[:, :, None] * gradients
    F = rows.flatten(0, 1).T @ rows.flatten(0, 1)
    given = p.argmin(1)  # labels that the model holds for the least likely
    target = p if labels == "own" else one_hot(given, 3).double()  # the loss is linear in the label: this averages
    H = hessian(model, cross_entropy, (x, target)).dense()
    return float((H * F).sum() / (H.norm() * F.norm()))


law = Law(
    claim="For a loss that is minus a log-likelihood, the Hessian averaged over labels drawn from the model is the Fisher "
    "information: positive, and not inverted. The inverse is the covariance of the maximum-likelihood estimate.",
    formula=r"E_{y\sim p_\theta}\nabla^2_\theta\ell(f(x),y)=E_{y\sim p_\theta}[\nabla\ell\,\nabla\ell^T]=F",
    assumes={"labels of the model's own probabilities": {"labels": "given"}},
    source="martens2020, section 5",
    predict=lambda **case: 1.0,
    measure=measure,
    cases=({"activation": "tanh"}, {"activation": "relu"}, {"activation": "gelu"}),
    full=({"activation": "sin"},),
    tolerance=1e-10,  # rounding
    repeats=8,
    quantity="cosine of Hessian and Fisher matrix",
    erratum="Lecture notes call the Hessian about the negative inverse of the Fisher information; that has a negative "
    "inner product with it, while the measured cosine is 1.",
    refuted=lambda **case: Band(-1.0, 0.0),  # of -F^+ and F: -rank F / (|F||F^+|)
)
