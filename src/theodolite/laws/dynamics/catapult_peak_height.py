r"""At its peak the loss of a catapult is proportional to the width."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import two_layer_path, two_layer_start


def measure(product: float, width: int, *, generator: torch.Generator, momentum: float = 0.0) -> float:
    u, v = two_layer_start(width, output=1.0, curvature=2.0, generator=generator)
    lrs = torch.tensor([product / 2.0], dtype=torch.float64)
    outputs, _ = two_layer_path(u, v, lrs=lrs, steps=30, momentum=momentum)
    return 0.5 * float(outputs.square().max())


law = Law(
    claim="The loss of a run beyond the edge grows until its output is of the order of the root of the width, where it bends the "
    "curvature: the wider the network, the higher the peak.",
    formula=r"\max_tL_t=\Theta(m),\qquad2<\gamma\lambda_0<4",
    assumes={"no momentum": {"momentum": 0.35}},
    source="lewkowycz2020, section 2",
    predict=lambda **case: 1.0,
    measure=measure,
    cases=tuple({"product": 2.75, "width": round(10 ** (k / 4))} for k in range(8, 19)),
    full=({"product": 2.75, "width": 1_000_000},),
    repeats=2,
    # a peak between two steps is missed by up to a factor 2, periodically in the logarithm of the width: 0.06 over 2.5 decades
    tolerance=0.2,
    resolution=1.3,  # an exponent, seen over 2.5 decades through that ripple
    quantity="largest loss",
    exponent="width",
)
