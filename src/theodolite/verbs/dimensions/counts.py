"""Dimension as a count of directions or functions: above noise, and in the null space of Hessians."""

from typing import Any

from theodolite.core.checks import InputError
from theodolite.core.reading import Estimate


def above_noise(x: Any) -> Estimate:
    """How many eigenvalues of the correlation matrix exceed what columns without correlation would show (1 %)."""
    from theodolite.measure.dimension import distinct_rows, variances
    from theodolite.theory.spectra import noise_edge, tracy_widom_quantile

    rows = distinct_rows(x)
    n = len(rows) - 1
    middle, spread = noise_edge(n, rows.columns) if rows.columns > 1 else (float(n), 0.0)
    values = n * variances(rows, standardized=True)
    return Estimate(float((values > middle + tracy_widom_quantile(0.99) * spread).sum()))


def by_null_space(x: Any) -> Estimate:
    """The dimension whose Hessian eigenmaps have a null space parted from the rest; an error where none has."""
    from theodolite.measure.dimension import dimension_hessian

    found, gaps = dimension_hessian(x)
    if found == 0:
        raise InputError(
            f"expected a null space parted from the rest, got none (gaps: {_gaps_told(gaps)}): not flat, or not 2 to 4 "
            "dimensions; use another method"
        )
    return Estimate(float(found))


def _gaps_told(gaps: dict[int, float]) -> str:
    return ", ".join(f"{gap:.3g} at {d}" for d, gap in gaps.items()) or "none could be tried"
