r"""Full-matrix Adagrad divides by the root of the summed squares: its first step has length $\eta$ at any scale of the labels."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import online_weights

FEATURES = 12


def predict(scale: float) -> float:
    return 1.0


def as_printed(scale: float) -> float:
    return scale**2


def measure(scale: float, *, generator: torch.Generator, rate: float = 0.3, damping: float = 1e-6) -> float:
    """The length of the first step over the rate, for a gradient of length ``scale``."""
    x = torch.nn.functional.normalize(torch.randn(1, FEATURES, generator=generator, dtype=torch.float64))
    # The library's form has unit damping: labels that much larger make it as small as asked, steps scaling alike.
    root = damping**0.5
    return (
        float(online_weights(x, torch.tensor([scale / root], dtype=torch.float64), exponent=0.5, lr=rate).norm()) / rate
    )


law = Law(
    claim="The update of full-matrix Adagrad is the gradient times the inverse root of the sum of its outer products; the first "
    "step is then as long as the rate says.",
    formula=r"w_{t+1}=w_t-\eta A_t^{-1/2}\nabla_t,\quad A_t=\epsilon I+\sum_{j\le t}\nabla_j\nabla_j^\top",
    assumes={"little damping": {"damping": 1.0}},
    source="duchi2011",
    predict=predict,
    measure=measure,
    cases=tuple({"scale": s} for s in (0.1, 1.0, 10.0)),
    tolerance=1e-3,  # the damping takes off eps / (2 |g|^2), 5e-5 at the smallest scale
    repeats=3,
    quantity="length of the first step over the rate",
    along="scale",
    erratum="Printed in slides as a step along the root of A itself, with w_t on both sides; that step would grow with the "
    "square of the gradient. (The same slides write y_t for y_j in the last line on the Vovk-Azoury-Warmuth forecast.)",
    refuted=as_printed,
)
