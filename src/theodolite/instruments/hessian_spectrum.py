"""What does the whole spectrum of the Hessian look like: bulk, outliers, negative part?

The largest and the lowest eigenvalues with bounds on their errors; the rest as a density by stochastic Lanczos quadrature,
with its error. How many outliers there are is reported as seen: that there be one for each class is a finding about some
networks, not a theorem, so there is no band. Negative curvature comes from the residuals alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from theodolite.core.instrument import Instrument
from theodolite.core.reading import SIGMAS, Band, Reading, Series
from theodolite.core.subject import Subject
from theodolite.instruments._common.kinds import bends_only
from theodolite.measure.curvature import (
    Operator,
    SpectralDensity,
    extreme_eigenpairs,
    gauss_newton,
    hessian,
    outlier_gap,
    spectral_density,
    trace,
)

TOP, PROBES, STEPS, PRODUCTS, POINTS = 15, 3, 24, 30, 81


def read(subject: Subject) -> Iterator[Reading]:
    """Outliers, the lowest eigenvalue, the share of negative ones, the trace beside that of the Gauss-Newton matrix."""
    assert subject.model is not None and subject.loss is not None
    operator = hessian(subject.model, subject.loss, subject.data)
    top = extreme_eigenpairs(operator, count=max(1, min(TOP, operator.size // 2)), tolerance=1e-4)
    values = torch.tensor(top.values, dtype=torch.float64)
    if float(values[0]) <= 0:
        return
    low = extreme_eigenpairs(operator, count=1, lowest=True, tolerance=3e-4)
    density = spectral_density(operator, probes=PROBES, steps=min(STEPS, operator.size), known=top)
    if int((values > 0).sum()) > 1:
        place, ratio = outlier_gap(values)
        yield Reading(
            quantity="eigenvalues above the largest gap",
            measured=float(place),
            meaning=f"Among the {len(values)} largest the widest gap, by a factor {ratio:.2f}, lies behind number {place}. "
            + (
                "It is faint: no clear outliers."
                if ratio < 1.5
                else "Those above it stand apart from the bulk: as many "
                "directions of the loss are much steeper than the others."
            ),
            series=_density_series(density, low.values[0], top.values[0]),
        )
    yield Reading(
        quantity="lowest Hessian eigenvalue",
        measured=low.values[0],
        stderr=low.errors[0] / SIGMAS,
        meaning=_lowest(low.values[0] / top.values[0]),
    )
    negative = density.mass_below(-1e-3 * top.values[0])
    yield Reading(
        quantity="share of eigenvalues below -1e-3 of the largest",
        measured=negative.value,
        stderr=negative.stderr,
        meaning="Directions of clearly negative curvature; they come from residuals and fade as these do.",
    )
    yield from _traces(subject, operator)


def _traces(subject: Subject, operator: Operator) -> Iterator[Reading]:
    assert subject.model is not None and subject.loss is not None
    total = trace(operator, products=PRODUCTS)
    try:
        other = trace(gauss_newton(subject.model, subject.loss, subject.data), products=PRODUCTS)
    except TypeError:  # several outputs, which the Gauss-Newton matrix does not know
        yield Reading(
            quantity="trace of the Hessian",
            measured=total.value,
            stderr=total.stderr,
            meaning="The sum of all curvatures; the model answers several tensors, so it stands alone.",
        )
        return
    error = math.hypot(total.stderr, other.stderr)
    yield Reading(
        quantity="trace of the Hessian",
        measured=total.value,
        stderr=total.stderr,
        expected=Band.around(other.value, abs=max(3 * SIGMAS * error, 1e-6 * abs(other.value)))
        if bends_only(subject.model)
        else None,
        meaning=f"The Gauss-Newton matrix has the trace {other.value:.4g}, known here to {error:.2g}: equal to that of the "
        "Hessian where activations are piecewise linear and no weight is used twice. Apart, the difference is curvature of "
        "the activations themselves, weighted by residuals.",
    )


def _density_series(density: SpectralDensity, low: float, high: float) -> Series:
    width = (high - low) / 60
    at = torch.linspace(low - 2 * width, high + 2 * width, POINTS, dtype=torch.float64)
    values, errors = density.density(at, bump_width=width)
    floor = 1 / (100 * density.size * width)
    return Series(
        x=tuple(at.tolist()),
        measured=tuple(values.clamp_min(floor).tolist()),
        stderr=tuple(errors.tolist()),
        x_label="eigenvalue",
        y_label="density",
        log="y",
    )


def _lowest(ratio: float) -> str:
    if ratio > -1e-3:
        return "No curvature to speak of is negative: the loss is as good as convex here."
    return (
        f"The most negative curvature is {abs(ratio):.2g} of the largest: this is not a minimum of the loss over these data, "
        "and residuals are left."
    )


instrument = Instrument(
    question="What does the spectrum of the Hessian look like?",
    read=read,
    needs={"model", "data", "loss"},
    cost="hvp",
    laws=("gauss-newton-split", "trace-of-hessian-relu", "hessian-rank"),
)
