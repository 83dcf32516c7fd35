r"""The Gauss-Newton matrix splits exactly into class, cross-class, within-class and equal-class parts."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.curvature import class_structure, gauss_newton, label_gradients, pair_structure
from theodolite.theory import Mlp


def measure(averages: str, sizes: tuple[int, ...], *, generator: torch.Generator, means: str = "weighted") -> float:
    """The distance of the sum of the parts from G; ``plain`` averages take every label with the weight 1/C."""
    classes = len(sizes)
    spec = Mlp(widths=(6,), activation="tanh", weight_variance=2.0, bias_variance=0.1)
    model = network(spec, 4, classes, generator=generator, dtype=torch.float64)
    labels = torch.repeat_interleave(torch.arange(classes), torch.tensor(sizes))
    x = 2 * torch.randn(len(labels), 4, generator=generator, dtype=torch.float64)
    g, p = label_gradients(model, x)
    G = gauss_newton(model, cross_entropy, (x, labels)).dense()
    weights = p if averages == "weighted" else torch.full_like(p, 1 / classes)
    parts = class_structure(g, weights, labels).matrix() if means == "weighted" else _by_plain_means(g, weights, labels)
    return float((parts - G).norm() / (parts.norm() + G.norm()))


def _by_plain_means(g: Tensor, weights: Tensor, labels: Tensor) -> Tensor:
    """The same parts about means in which every sample of a pair of classes counts alike."""
    N, C, D = g.shape
    counts = torch.bincount(labels, minlength=C).to(g)
    means = g.new_zeros(C, C, D).index_add_(0, labels, g) / counts[:, None, None]
    w_pair = g.new_zeros(C, C).index_add_(0, labels, weights / N)
    rest = (weights / N).sqrt()[:, :, None] * (g - means[labels])
    return pair_structure(means, w_pair).matrix() + torch.einsum("ncp,ncq->pq", rest, rest)


law = Law(
    claim="With means weighted by the model's probabilities the parts about class means, about means of pairs of classes and "
    "about samples add up to the Gauss-Newton matrix, exactly and for any class sizes.",
    formula=r"G=\sum_cw_cg_cg_c^T+\sum_{c'\neq c}w_{cc'}(g_{cc'}-g_c)(\cdot)^T+\sum_{i,c,c'}w_{icc'}(g_{icc'}-g_{cc'})(\cdot)^T"
    r"+\sum_cw_{cc}g_{cc}g_{cc}^T",
    assumes={"means weighted by the probabilities": {"means": "plain"}},
    source="papyan2020traces",
    # rounding, and not even nearly zero
    predict=lambda averages, sizes: Band.around(0.0, abs=1e-11) if averages == "weighted" else Band(low=1e-3),
    measure=measure,
    cases=(
        {"averages": "weighted", "sizes": (4, 4, 4)},
        {"averages": "weighted", "sizes": (1, 3, 6, 2)},
        {"averages": "plain", "sizes": (4, 4, 4)},
    ),
    full=({"averages": "weighted", "sizes": (5, 5, 5, 5, 5, 5)},),
    repeats=8,
    resolution=1e4,  # that it is not zero is all that is said of the other averages: nine decades above rounding
    quantity="distance of parts and matrix over the sum of their norms",
    erratum="The decomposition is often written with plain averages over samples and labels; these do not add up to the "
    "Gauss-Newton matrix. The weights are p_i(c')/N.",
    refuted=lambda **case: Band(high=1e-3),
)
