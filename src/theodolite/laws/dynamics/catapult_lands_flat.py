r"""A catapult that converges ends where its step is stable: $\gamma\lambda_\infty<2$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import two_layer_curvature, two_layer_path, two_layer_start


def predict(product: float, width: int) -> Band:
    return Band(low=0.0, high=2.0)


def measure(product: float, width: int, *, generator: torch.Generator, momentum: float = 0.0) -> float:
    u, v = two_layer_start(width, output=1.0, curvature=2.0, generator=generator)
    lr = product / 2.0
    _, end = two_layer_path(u, v, lrs=torch.tensor([lr], dtype=torch.float64), steps=60, momentum=momentum)
    return lr * two_layer_curvature(*end)


law = Law(
    claim="Steps between 2 and 4 over the initial curvature end at a curvature for which they are stable: flatter than where "
    "they began.",
    formula=r"2<\gamma\lambda_0<4\;\Rightarrow\;\gamma\lambda_\infty<2",
    assumes={"no momentum": {"momentum": 0.5}},
    source="lewkowycz2020, section 2",
    predict=predict,
    measure=measure,
    cases=tuple({"product": p, "width": 400} for p in (2.5, 3.0, 3.5)),
    full=({"product": 3.9, "width": 4000},),
    repeats=3,
    quantity="step times curvature at the end",
    along="product",
)
