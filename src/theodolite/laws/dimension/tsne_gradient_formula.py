r"""The gradient of t-SNE is $4\sum_j(p_{ij}-q_{ij})(1+|y_i-y_j|^2)^{-1}(y_i-y_j)$: equal to automatic differentiation."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.dimension import tsne_affinities, tsne_gradient, tsne_loss


def measure(points: int, perplexity: float, *, generator: torch.Generator, symmetric: bool = True) -> float:
    x = torch.randn(points, 6, generator=generator, dtype=torch.float64)
    y = torch.randn(points, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    p = tsne_affinities(x, perplexity=perplexity)
    if not symmetric:
        p = p * (0.5 + torch.rand(points, points, generator=generator, dtype=torch.float64))
        p = p / p.sum()
    truth = torch.autograd.grad(tsne_loss(p, y), y)[0]
    return float((tsne_gradient(p, y.detach()) - truth).norm() / truth.norm())


law = Law(
    claim="The closed form of the gradient is that of the divergence between the two tables of affinities.",
    formula=r"\frac{\partial C}{\partial y_i}=4\sum_j(p_{ij}-q_{ij})(1+|y_i-y_j|^2)^{-1}(y_i-y_j)",
    assumes={"symmetric affinities": {"symmetric": False}},
    source="vandermaaten2008",
    predict=lambda **case: Band.around(0.0, abs=1e-12),  # rounding of sums over the points
    measure=measure,
    cases=({"points": 20, "perplexity": 5.0}, {"points": 40, "perplexity": 10.0}, {"points": 60, "perplexity": 15.0}),
    repeats=8,
    quantity="relative difference from automatic differentiation",
)
