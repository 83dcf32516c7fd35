r"""A two-layer linear network on one datum follows two exact recursions, of its output and of its curvature."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import two_layer_path, two_layer_start
from theodolite.theory.dynamics import catapult_path

CURVATURE, OUTPUT = 2.0, 1.5


def predict(product: float, width: int, steps: int) -> float:
    return catapult_path(OUTPUT, CURVATURE, lr=product / CURVATURE, width=width, steps=steps).outputs[-1]


def measure(
    product: float, width: int, steps: int, *, generator: torch.Generator, activation: str = "linear", halves: int = 1
) -> float:
    u, v = two_layer_start(width, output=OUTPUT, curvature=CURVATURE, generator=generator)
    lr = product / CURVATURE
    for _ in range(halves):
        outputs, (u, v) = two_layer_path(
            u, v, lrs=torch.tensor([lr / halves], dtype=u.dtype), steps=steps, activation=activation
        )
    return float(outputs[-1, 0])


law = Law(
    claim="The output and the tangent kernel of a two-layer linear network trained on one datum by steps of any size obey two "
    "closed recursions, at every width: curvature falls while the output is large and step times curvature is below 4.",
    formula=r"f'=\Big(1-\eta\lambda+\frac{\eta^2f^2}{n}\Big)f,\qquad\lambda'=\lambda+\frac{\eta f^2}{n}(\eta\lambda-4)",
    assumes={"a linear network": {"activation": "tanh"}, "steps of the stated size": {"halves": 2}},
    source="lewkowycz2020, section 2",
    predict=predict,
    measure=measure,
    cases=(
        {"product": 1.0, "width": 50, "steps": 3},
        {"product": 2.5, "width": 50, "steps": 8},
        {"product": 3.5, "width": 500, "steps": 5},
    ),
    full=({"product": 2.5, "width": 5000, "steps": 20},),
    tolerance=1e-9,  # rounding, which a few steps of factors below 3.5 enlarge by at most 1e4
    repeats=4,
    quantity="output after the steps",
)
