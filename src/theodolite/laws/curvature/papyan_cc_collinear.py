r"""Class, cross-class and equal-class parts of the Gauss-Newton matrix span C(C-1) directions, not C squared."""

import torch

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.measure.curvature import class_structure, label_gradients
from theodolite.theory import Mlp
from theodolite.theory.curvature import cross_class_rank


def measure(classes: int, *, generator: torch.Generator, weights: str = "probabilities") -> float:
    spec = Mlp(widths=(8,), activation="tanh", weight_variance=2.0, bias_variance=0.1)
    model = network(spec, 5, classes, generator=generator, dtype=torch.float64)
    labels = torch.arange(classes).repeat_interleave(4)
    x = torch.randn(len(labels), 5, generator=generator, dtype=torch.float64)
    g, p = label_gradients(model, x)
    p = p if weights == "probabilities" else torch.full_like(p, 1 / classes)
    return float(class_structure(g, p, labels).rank("class", "cross", "equal", tolerance=1e-12))


law = Law(
    claim="For each class the probability-weighted gradients over all labels sum to zero, so the mean gradient of a class "
    "for its own label is collinear with that for the other labels: the outliers of the spectrum are at most C(C-1).",
    formula=r"\sum_{c'}w_{cc'}g_{cc'}=0\;\Rightarrow\;w_{cc}g_{cc}=-w_cg_c,\quad "
    r"\mathrm{rank}(G_{class}+G_{cross}+G_{c=c'})\leq C(C-1)",
    assumes={"weights are the model's probabilities": {"weights": "equal"}},
    source="papyan2020traces",
    predict=lambda classes: cross_class_rank(classes),
    measure=measure,
    cases=({"classes": 2}, {"classes": 3}, {"classes": 4}),
    full=({"classes": 6},),
    repeats=4,
    quantity="rank of the class and cross-class parts",
    along="classes",
    erratum="C outliers from the classes and C^2 from the pairs of classes are often counted; the pairs of equal classes "
    "add no direction of their own, and the means of the pairs of one class are tied by one relation.",
    refuted=lambda classes: classes**2,
)
