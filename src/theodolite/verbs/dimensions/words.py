"""Why estimators of dimension agree or differ, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from theodolite.core.reading import Estimate

NOTABLE = 0.15
"""A relative difference that is worth a sentence, if it also exceeds three standard errors."""


def explained(
    values: Mapping[str, Estimate], curve: Sequence[Estimate], *, rows: int, rank: int, notes: Sequence[str]
) -> tuple[Estimate, tuple[str, ...]]:
    """The estimate to go by, and the sentences that explain the others.

    By default the calibrated one, whose error covers the bias of few rows in many dimensions; where the dimension rises
    from the smallest scales, near-duplicates rule those, and the largest value across scales is taken.
    """
    rising = _rise(curve)
    best = rising[1] if rising else values.get("TwoNN, calibrated", curve[0] if curve else Estimate(math.nan))
    sentences = [f"{note[0].upper()}{note[1:]}." for note in notes]
    sentences += _scale_words(curve, rising)
    sentences += _size_words(values, rows, bool(rising))
    sentences += _hull_words(values, best, rank)
    return best, tuple(sentences)


def _rise(curve: Sequence[Estimate]) -> tuple[Estimate, Estimate] | None:
    """The first point of the curve and its highest, where the way up is notable."""
    if len(curve) < 2:
        return None
    top = max(curve[1:], key=lambda estimate: estimate.value)
    return (curve[0], top) if _above(top, curve[0]) else None


def _above(one: Estimate, other: Estimate) -> bool:
    error = math.hypot(one.stderr, other.stderr)
    return one.value > (1 + NOTABLE) * other.value and one.value - other.value > 3 * error


def _scale_words(curve: Sequence[Estimate], rising: tuple[Estimate, Estimate] | None) -> Iterator[str]:
    if len(curve) < 2:
        return
    first, last = curve[0], curve[-1]
    if rising:
        yield (
            f"The dimension rises from {first.value:.1f} at the smallest distances to {rising[1].value:.1f} at "
            f"{rising[1].scale:.3g}: many rows come with near-duplicates (sentences that differ in one word, repeated or "
            "augmented samples), so TwoNN reads how such copies differ, not the data. Go by the larger scales."
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


def _size_words(values: Mapping[str, Estimate], rows: int, rising: bool) -> Iterator[str]:
    raw, calibrated, mle = (values.get(name) for name in ("TwoNN", "TwoNN, calibrated", "MLE, k = 10 to 20"))
    if raw and calibrated and not rising and calibrated.value > 1.08 * raw.value:
        yield (
            f"Biased low: with {rows:,} rows TwoNN reads {raw.value:.1f} where a cube or a Gaussian of about "
            f"{calibrated.value:.1f} dimensions would read the same, since in many dimensions most rows lie near the edge."
        )
    limit = 2 * math.log10(rows)
    if raw and raw.value > limit:
        yield (
            f"Counting pairs cannot show a dimension above 2 log10(rows) = {limit:.1f} (Eckmann and Ruelle): the correlation "
            "dimension and large neighbourhoods fall short here, and every number rests on the calibration."
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
            "neighbours: thin directions, such as noise, count for neighbours but not for variance."
        )
    else:
        yield f"The linear hull ({hull.value:.0f} directions for 95 %) has about as many dimensions: the data is nearly flat."
