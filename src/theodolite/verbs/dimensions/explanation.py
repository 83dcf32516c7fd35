"""Why estimators of dimension agree or differ, in plain sentences."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from theodolite.core.reading import Estimate
from theodolite.verbs.dimensions.found import Found
from theodolite.verbs.dimensions.steps import WITHOUT_COPIES

NOTABLE = 0.15
"""A relative difference that is worth a sentence, if it also exceeds three standard errors."""


def explained(
    values: Mapping[str, Estimate], state: Found, *, rows: int, notes: Sequence[str]
) -> tuple[Estimate, tuple[str, ...]]:
    """The estimate to go by, and the sentences that explain the others.

    The calibrated one, whose error covers the bias of few rows in many dimensions, taken without near-duplicates where
    these rule the smallest scales. On a lattice, where it has no answer, the correlation dimension, and where rows are all
    equally far the linear hull. No number exceeds that hull.
    """
    names = (WITHOUT_COPIES, "TwoNN, calibrated", "correlation dimension")
    by_neighbors = [values[name] for name in names if name in values]
    best = by_neighbors[0] if by_neighbors else Estimate(float(state.rank), math.nan)
    best = replace(best, value=min(best.value, float(state.rank)))
    sentences = [f"{note[0].upper()}{note[1:]}." for note in notes]
    if not by_neighbors:
        sentences.append(
            "No estimator by neighbors has an answer here: the number given is that of the linear hull, which the dimension "
            "cannot exceed."
        )
    sentences += _scale_words(state, best)
    sentences += _size_words(values, rows, state.copies is not None)
    sentences += _hull_words(values, best, state.rank)
    return best, tuple(sentences)


def _above(one: Estimate, other: Estimate) -> bool:
    error = math.hypot(one.stderr, other.stderr)
    return one.value > (1 + NOTABLE) * other.value and one.value - other.value > 3 * error


def _scale_words(state: Found, best: Estimate) -> Iterator[str]:
    curve = state.curve
    if len(curve) < 2:
        return
    first, top = curve[0], max(curve, key=lambda estimate: estimate.value)
    last = min(curve, key=lambda estimate: estimate.value)
    if state.copies is not None:
        yield (
            f"{100 * state.copies.share:.0f} % of rows come with near-duplicates, closer than {state.copies.radius:.3g} "
            "(sentences that differ in one word, repeated or augmented samples): among them TwoNN reads how such copies "
            f"differ, not the data. With one row of each group it is {best.value:.1f}."
        )
    elif _above(top, first):
        yield (
            f"The dimension rises from {first.value:.1f} at the smallest distances to {top.value:.1f} at {top.scale:.3g}, and "
            "the ratios at the smallest obey their law: the data bends back on itself, as a helix or a roll does, and far "
            "parts of it come near. Trust the smallest scales."
        )
    elif _above(first, last):
        low, high = (f"{estimate.scale or 0:.3g}" for estimate in (first, last))
        yield (
            f"The dimension falls from {first.value:.1f} at distances near {low} to {last.value:.1f} near {high}. Noise does "
            "that (it fills every direction, but only below its own scale), and so do edges, clusters and, in many dimensions, "
            "too few rows; a plateau in the curve is the dimension of the surface."
        )
    else:
        yield "The dimension is the same across scales: neither noise nor near-duplicates nor edges are seen."


def _size_words(values: Mapping[str, Estimate], rows: int, copies: bool) -> Iterator[str]:
    raw, calibrated, mle = (values.get(name) for name in ("TwoNN", "TwoNN, calibrated", "MLE, k = 10 to 20"))
    if raw and calibrated and not copies and calibrated.value > 1.08 * raw.value:
        yield (
            f"Biased low: with {rows:,} rows TwoNN reads {raw.value:.1f} where a cube or a Gaussian of about "
            f"{calibrated.value:.1f} dimensions would read the same, since in many dimensions most rows lie near the edge."
        )
    limit = 2 * math.log10(rows)
    if raw and raw.value > limit:
        yield (
            f"Counting pairs cannot show a dimension above 2 log10(rows) = {limit:.1f} (Eckmann and Ruelle): the correlation "
            "dimension and large neighborhoods fall short here, and every number rests on the calibration."
        )
    elif raw and mle and not _above(raw, mle) and not _above(mle, raw):
        yield "TwoNN and maximum likelihood agree within their errors."


def _hull_words(values: Mapping[str, Estimate], best: Estimate, rank: int) -> Iterator[str]:
    hull = values.get("PCA 95 %")
    if hull is None or not math.isfinite(best.value):
        return
    if hull.value > 1.5 * best.value + 1:
        yield (
            f"{hull.value:.0f} straight directions hold 95 % of the variance, and {rank} all of it: a surface of about "
            f"{best.value:.1f} dimensions bends through them. A linear reduction needs the larger number, a nonlinear one "
            "may do with the smaller."
        )
    elif hull.value < best.value - max(1.0, 3 * best.stderr):
        yield (
            f"{hull.value:.0f} directions hold 95 % of the variance, fewer than the {best.value:.1f} dimensions seen among "
            "neighbors: thin directions, such as noise, count for neighbors but not for variance."
        )
    else:
        yield f"The linear hull ({hull.value:.0f} directions for 95 %) has about as many dimensions: the data is nearly flat."
