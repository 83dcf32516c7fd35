r"""Under cross-entropy the Gauss-Newton matrix is the second moment of gradients for all labels, weighted by probability."""

import torch
from torch.nn.functional import cross_entropy, one_hot

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.curvature import gauss_newton, label_gradients
from theodolite.theory import Mlp


def measure(classes: int, *, generator: torch.Generator, weights: str = "probabilities") -> float:
    spec = Mlp(widths=(6,), activation="relu", weight_variance=2.0, bias_variance=0.1)
    model = network(spec, 4, classes, generator=generator, dtype=torch.float64)
    x = 2 * torch.randn(8, 4, generator=generator, dtype=torch.float64)
    y = torch.randint(0, classes, (8,), generator=generator)
    g, p = label_gradients(model, x)
    w = {"probabilities": p, "equal": torch.full_like(p, 1 / classes), "labels": one_hot(y, classes).to(p)}[
        weights
    ] / len(x)
    G = gauss_newton(model, cross_entropy, (x, y)).dense()
    moment = torch.einsum("nc,ncp,ncq->pq", w, g, g)
    return float((moment - G).norm() / (moment.norm() + G.norm()))


law = Law(
    claim="The Gauss-Newton matrix of the softmax cross-entropy is the sum, over samples and all possible labels, of squares "
    "of gradients, each weighted by the probability that the model gives to that label.",
    formula=r"G=\sum_{i,c'}\frac{p_i(c')}{N}\,g_{ic'}g_{ic'}^T,\quad g_{ic'}=\nabla_\theta\ell(f(x_i),c')=J_i^T(p_i-e_{c'})",
    assumes={
        "weights are the model's probabilities": {"weights": "equal"},
        "all labels, not the given ones alone": {"weights": "labels"},
    },
    source="papyan2020traces",
    predict=lambda **case: Band.around(0.0, abs=1e-11),  # rounding
    measure=measure,
    cases=({"classes": 3}, {"classes": 5}, {"classes": 8}),
    repeats=8,
    quantity="distance of the two matrices over the sum of their norms",
)
