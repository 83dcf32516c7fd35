"""What does the whole spectrum of the Hessian look like: bulk, outliers, negative part?

The largest and lowest eigenvalues with error bounds, and the rest as a density by stochastic Lanczos quadrature, with its
error. The number of outliers is reported as seen: one per class is an observation about some networks, not a theorem, so there
is no band. Negative curvature comes only from the residuals.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from theodolite.core.instrument import Instrument
from theodolite.core.reading import SIGMAS, Band, Estimate, Reading, Series
from theodolite.core.statistics import parted_error
from theodolite.core.subject import Subject
from theodolite.instruments._common.architecture import bends_only
from theodolite.instruments._common.data_visit import afforded, pace_of, parted, passes_afforded, sample_count, thinned
from theodolite.measure.curvature import (
    Eigenpairs,
    SpectralDensity,
    extreme_eigenpairs,
    gauss_newton,
    hessian,
    hessian_again,
    outlier_gap,
    spectral_density,
    trace,
)

TOP, PROBES, STEPS, PRODUCTS, POINTS, FEWEST = 15, 3, 24, 30, 81, 2
ALL, SOME, ROWS = 10_000, 48, 1 << 27
"""Products that are as good as without end, that are enough for all readings, and numbers that eigenvectors may take."""


OWN = 0.5
"""The share of the allowance that products may cost: on fast devices keeping long vectors orthogonal costs as much again."""


@dataclass(frozen=True)
class _Spectrum:
    """What some samples say: the ends, the density between them, and both traces (None where they were not paid for)."""

    top: Eigenpairs
    low: Eigenpairs
    density: SpectralDensity
    total: Estimate | None
    other: Estimate | None
    sample_bytes: float


def read(subject: Subject) -> Iterator[Reading]:
    """Outliers, the lowest eigenvalue, the share of negative ones, the trace beside that of the Gauss-Newton matrix."""
    samples, products = _plan(subject)
    data = thinned(subject, samples)
    some = samples < sample_count(subject)
    share = OWN / (2 if some else 1)
    seen = _measured_spectrum(subject, data, products, passes_afforded(subject, "product", samples, share=share))
    if seen.top.values[0] <= 0:
        return
    parts: list[_Spectrum] = []
    if some and not subject.allowance.over():
        cut = list(parted(data, _parts(samples)))
        each = passes_afforded(subject, "product", math.ceil(samples / len(cut)), share=share / len(cut))
        parts = [_measured_spectrum(subject, part, products, each, seen) for part in cut]
    thin = _Thinned(parts, seen, 1 - samples / sample_count(subject))
    yield from _ends(seen, thin, plain=bends_only(subject.model))


@dataclass(frozen=True)
class _Thinned:
    """Parts of the samples, beside all of them: how much a number hangs on which samples were seen, and how many."""

    parts: list[_Spectrum]
    whole: _Spectrum
    left_out: float

    def error(self, number: Callable[[_Spectrum], float]) -> float:
        """What having seen some samples alone costs it."""
        return parted_error(number(self.whole), [number(part) for part in self.parts], left_out=self.left_out)


def _parts(samples: int) -> int:
    """In how many parts samples are looked at again, for the error of having seen no others."""
    return 4 if samples >= 32 else 2


def _plan(subject: Subject) -> tuple[int, int]:
    """How many samples, and how many products with each; enough for everything where the budget has no end.

    Where starting passes costs more than all that there is, as on fast devices, the samples are as many as double that start,
    and the products fewer.
    """
    everything = sample_count(subject)
    if subject.allowance.is_endless:
        return (subject.allowance.samples or everything), ALL
    passes, left = 3 * TOP + PROBES * STEPS + 4 * PRODUCTS, OWN * subject.allowance.seconds
    pace = pace_of(subject, "product")
    of_all = int(left / max(1e-9, pace.pass_seconds("product", everything)))
    if of_all >= passes:
        return everything, ALL
    if of_all >= SOME:  # fewer products with all samples, which leave no error of having seen some alone
        return everything, of_all
    samples = afforded(subject, "product", passes=2 * passes, fewest=min(FEWEST, everything))
    even = pace.starts["product"] / max(1e-9, pace.seconds["product"])
    samples = min(everything, max(samples, int(even)))
    again = 1 if samples >= everything else 1 + _parts(samples)
    each = again * pace.starts["product"] + min(again, 2) * samples * pace.seconds["product"]
    return samples, max(8, int(left / max(1e-9, each)))


def _measured_spectrum(
    subject: Subject, data: Any, products: int, most: float, known: _Spectrum | None = None
) -> _Spectrum:
    """A third of the products each for the ends, the density and the traces; where all are paid for, until they are known.

    The ends may take two thirds of ``most`` products then, and what they leave is for the others.
    """
    if known is None:
        operator = hessian(subject.model, subject.loss, data)
    else:  # a part of what was seen before
        operator = hessian_again(subject.model, subject.loss, data, sample_bytes=known.sample_bytes)
    third = max(3, products // 3)
    count = max(1, min(TOP, operator.size // 2, third // 3, ROWS // operator.size))
    ample = products >= ALL

    def enough(share: float, few: int) -> Callable[[int], bool]:
        return lambda done: done >= (2000 if ample else few) or done > max(3 * count, share * most)

    top = extreme_eigenpairs(operator, count=count, tolerance=1e-4, most=enough(0.5, max(2, 2 * third // 3)))
    low = extreme_eigenpairs(operator, count=1, lowest=True, tolerance=3e-4, most=enough(0.15, max(2, third // 3)))
    more = max(0.0, most - top.products - low.products)
    probes = PROBES if ample else 2
    steps = min(STEPS, operator.size - count, max(2, third // probes), max(4, int(min(more, ALL) / (2 * probes))))
    density = spectral_density(operator, probes=probes, steps=max(1, steps), known=top)
    total = other = None
    if third >= 8:
        each = max(4, int(min(PRODUCTS, third // 2, more / 4)))
        total = trace(operator, products=each)
        with contextlib.suppress(TypeError):  # several outputs, which the Gauss-Newton matrix does not know
            matrix = gauss_newton(subject.model, subject.loss, data)
            other = trace(matrix, products=each)
    return _Spectrum(top, low, density, total, other, operator.sample_bytes)


def _ends(seen: _Spectrum, thinned: _Thinned, *, plain: bool) -> Iterator[Reading]:
    top, low, density = seen.top, seen.low, seen.density
    values = torch.tensor(top.values, dtype=torch.float64)
    if int((values > 0).sum()) > 1:
        place, ratio = outlier_gap(values)
        yield Reading(
            quantity="eigenvalues above the largest gap",
            measured=float(place),
            stderr=math.hypot(thinned.error(lambda part: float(_gap(part))), _doubt(values, thinned)),
            meaning=f"Among the {len(values)} largest the widest gap, a factor of {ratio:.2f}, comes after number {place}. "
            + (
                "It is small: there are no clear outliers."
                if ratio < 1.5
                else "Those above it are outliers: in these directions the loss is much steeper than in the others."
            ),
            series=_density_series(density, low.values[0], top.values[0]),
        )
    yield Reading(
        quantity="lowest Hessian eigenvalue",
        measured=low.values[0],
        stderr=math.hypot(low.errors[0] / SIGMAS, thinned.error(lambda part: part.low.values[0])),
        meaning=_lowest(low.values[0] / top.values[0]),
    )
    negative = density.mass_below(-1e-3 * top.values[0])
    yield Reading(
        quantity="share of eigenvalues below -1e-3 of the largest",
        measured=negative.value,
        stderr=min(1.0, math.hypot(negative.stderr, thinned.error(lambda part: _negative(part)))),  # it is a share
        meaning="Directions of clearly negative curvature; they come from residuals and disappear with them.",
    )
    if seen.total is not None:
        yield _trace(seen.total, seen.other, thinned, plain=plain)


def _doubt(values: torch.Tensor, thinned: _Thinned) -> float:
    """How far away another gap lies that could be the widest as well, for all that is known of the eigenvalues."""
    positive = values[values > 0].tolist()
    errors = [thinned.error(partial(_value_at, place)) for place in range(len(positive))]
    relative = [error / value for error, value in zip(errors, positive, strict=True)]
    ratios = [math.log(one / other) for one, other in pairwise(positive)]
    spreads = [SIGMAS * math.hypot(*pair) for pair in pairwise(relative)]
    best = max(range(len(ratios)), key=lambda place: ratios[place])
    rivals = [
        place
        for place, ratio in enumerate(ratios)
        if ratio + spreads[place] >= ratios[best] - spreads[best] and ratio > 0
    ]
    return max((abs(place - best) for place in rivals), default=0) / SIGMAS


def _value_at(place: int, part: _Spectrum) -> float:
    return part.top.values[min(place, len(part.top.values) - 1)]


def _gap(part: _Spectrum) -> int:
    values = torch.tensor(part.top.values, dtype=torch.float64)
    return outlier_gap(values)[0] if int((values > 0).sum()) > 1 else 0


def _negative(part: _Spectrum) -> float:
    return part.density.mass_below(-1e-3 * part.top.values[0]).value


def _trace(total: Estimate, other: Estimate | None, thinned: _Thinned, *, plain: bool) -> Reading:
    thin = thinned.error(lambda part: part.total.value if part.total is not None else 0.0)
    if other is None:
        return Reading(
            quantity="trace of the Hessian",
            measured=total.value,
            stderr=math.hypot(total.stderr, thin),
            meaning="The sum of all curvatures; the model returns several tensors, so there is nothing to compare it with.",
        )
    error = math.hypot(total.stderr, other.stderr)
    return Reading(
        quantity="trace of the Hessian",
        measured=total.value,
        stderr=math.hypot(total.stderr, thin),
        expected=Band.around(other.value, abs=max(3 * SIGMAS * error, 1e-6 * abs(other.value))) if plain else None,
        meaning=f"The Gauss-Newton matrix has the trace {other.value:.4g}, known here to {error:.2g}: equal to that of the "
        "Hessian if activations are piecewise linear and no weight is used twice. Any difference is the curvature of the "
        "activations, weighted by residuals.",
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
        return "Hardly any curvature is negative: the loss is practically convex here."
    return f"The most negative curvature is {abs(ratio):.2g} of the largest: this is not a minimum of the loss on these data."


instrument = Instrument(
    question="What does the spectrum of the Hessian look like?",
    read=read,
    needs={"model", "data", "loss"},
    cost="hvp",
    sees={"product": 34},
    laws=("gauss-newton-split", "trace-of-hessian-relu", "hessian-rank"),
)
