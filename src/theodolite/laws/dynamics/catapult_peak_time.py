r"""A catapult takes $\frac12\ln m/\ln(\gamma\lambda_0-1)$ steps to its peak: so many more for each decade of width."""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import two_layer_path, two_layer_start
from theodolite.theory.dynamics import peak_time

NARROW, WIDE = 100, 100_000
STEPS = 80  # beyond every peak here
DECADES = math.log10(WIDE / NARROW)


def predict(product: float) -> Band:
    slope = (peak_time(WIDE, product) - peak_time(NARROW, product)) / DECADES
    # a peak falls on a whole step: one step over three decades, and its shape as much
    return Band.around(slope, abs=0.5)


def measure(product: float, *, generator: torch.Generator, momentum: float = 0.0) -> float:
    """Steps to the largest output a decade of width, from two widths three decades apart."""
    peaks = []
    for width in (NARROW, WIDE):
        u, v = two_layer_start(width, output=1.0, curvature=2.0, generator=generator)
        lrs = torch.tensor([product / 2.0], dtype=torch.float64)
        outputs, _ = two_layer_path(u, v, lrs=lrs, steps=STEPS, momentum=momentum)
        peaks.append(int(outputs[:, 0].abs().argmax()))
    return (peaks[1] - peaks[0]) / DECADES


law = Law(
    claim="Beyond the edge the output grows by the factor of the linear model until it is of the order of the root of the width; "
    "only then curvature falls.",
    formula=r"T_{peak}=\frac{\ln m}{2\ln(\gamma\lambda_0-1)}+O(1),\qquad2<\gamma\lambda_0<4",
    assumes={"no momentum": {"momentum": 0.025}, "a wide network": None},
    source="lewkowycz2020, section 2",
    predict=predict,
    measure=measure,
    cases=({"product": 2.25}, {"product": 2.5}, {"product": 3.0}),
    full=({"product": 2.1},),
    repeats=2,
    quantity="steps to the peak a decade of width",
)
