r"""A catapult that converges ends where its step is stable: $\gamma\lambda_\infty<2$."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import two_layer_curvature, two_layer_path, two_layer_start
from theodolite.theory.dynamics import catapult_path

STEPS = 60


def predict(product: float, width: int) -> float:
    lr = product / 2.0
    end = lr * catapult_path(1.0, 2.0, lr=lr, width=width, steps=STEPS).curvatures[-1]
    assert end < 2, "the claim, by the recursion"
    return end


def measure(product: float, width: int, *, generator: torch.Generator, momentum: float = 0.0) -> float:
    u, v = two_layer_start(width, output=1.0, curvature=2.0, generator=generator)
    lr = product / 2.0
    _, end = two_layer_path(u, v, lrs=torch.tensor([lr], dtype=torch.float64), steps=STEPS, momentum=momentum)
    return lr * two_layer_curvature(*end)


law = Law(
    claim="Steps between 2 and 4 over the initial curvature end at a curvature for which they are stable: flatter than where "
    "they began.",
    formula=r"2<\gamma\lambda_0<4\;\Rightarrow\;\gamma\lambda_\infty<2,\quad "
    r"\lambda_{t+1}=\lambda_t+\frac{\gamma f_t^2}{n}(\gamma\lambda_t-4)",
    assumes={"no momentum": {"momentum": 3.1e-07}},
    source="lewkowycz2020, section 2",
    predict=predict,
    measure=measure,
    cases=tuple({"product": p, "width": 400} for p in (2.5, 3.0, 3.5)),
    full=({"product": 3.9, "width": 4000},),
    repeats=3,
    tolerance=1e-6,  # rounding, magnified while the output grows to the root of the width
    quantity="step times curvature at the end",
    along="product",
)
