"""The steps of estimating dimension: each adds readings to what is found, or says why it could not."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError
from theodolite.core.question import Skipped
from theodolite.core.reading import Estimate, Series
from theodolite.measure import dimension as measure
from theodolite.measure.dimension import (
    dimension_calibrated,
    dimension_hessian,
    dimension_participation,
    dimension_twonn,
    directions_needed,
    distinct_rows,
    gaussian_mixture,
    gride_curve,
    isomap,
    local_pca,
    near_copies,
    nearest_neighbors,
    planar_embeddings,
    rank_of,
    twonn_fit,
    variances,
)
from theodolite.theory.spectra import noise_edge, tracy_widom_quantile
from theodolite.verbs.dimensions.found import Found, Plane

LARGEST = 128
"""Neighbors in the shared graph: Gride up to its 64th and 128th."""
WITHOUT_COPIES = "TwoNN, calibrated, without near-duplicates"


def steps_of(rows: Any, state: Found, labels: Any, picture: bool) -> list[Callable[[], None]]:
    """The steps in order; each adds to the state, or says why it could not."""

    def guarded(name: str, step: Callable[[], None]) -> None:
        try:
            step()
        except (ValueError, ArithmeticError, RuntimeError) as error:
            state.skipped.append(Skipped(name, " ".join(str(error).split()) or type(error).__name__))

    def one(family: str, name: str, estimate: Callable[[], Estimate], meaning: str) -> Callable[[], None]:
        return lambda: state.add(family, name, estimate(), meaning)

    def few(most: int) -> tuple[int, int]:
        return min(most // 2, state.graph.count // 2), min(most, state.graph.count)

    steps: dict[str, Callable[[], None]] = {
        "variance": lambda: _variance(rows, state),
        "nearest neighbors": lambda: _graph(rows, state),
        "TwoNN": lambda: _twonn(state),
        "MLE": one(
            "neighbors",
            "MLE, k = 10 to 20",
            lambda: measure.dimension_mle(state.graph, neighbors=few(20)),
            "Maximum likelihood over 10 to 20 neighbors: a larger scale, a smaller error, more bias by edges.",
        ),
        "correlation dimension": one(
            "neighbors",
            "correlation dimension",
            lambda: measure.dimension_correlation(state.graph, neighbors=few(20)),
            "How the number of close pairs grows with distance; dense regions weigh most.",
        ),
        "scales": lambda: _scales(state),
        "near-duplicates": lambda: _copies(state),
        "calibrated": one(
            "neighbors",
            "TwoNN, calibrated",
            lambda: measure.dimension_calibrated(rows),
            "The dimension of a cube or Gaussian of as many rows (at most 1,500) that TwoNN would read the same; the "
            "difference of the two is part of the error.",
        ),
        "simplex skewness": one(
            "manifold",
            "ESS",
            lambda: measure.dimension_ess(state.graph, neighbors=few(30)[1]),
            "Expected simplex skewness: angles among 30 neighbors, little biased by edges, much by bends.",
        ),
        "norms and angles": one(
            "manifold",
            "DANCo",
            lambda: measure.dimension_danco(rows),
            "Norms and angles of 10 neighbors, compared with balls of as many rows (at most 1,500).",
        ),
        "local PCA": lambda: _local(state),
        "parallel analysis": one(
            "variance",
            "parallel analysis",
            lambda: measure.dimension_parallel(rows.sample(max(500, min(len(rows), 2_000_000 // rows.columns)))),
            "Directions of the columns' correlations that shuffled columns do not have, at 5 %; none in data of "
            "independent columns.",
        ),
        "Gaussian mixture": lambda: _mixture(rows, state),
        "Isomap": lambda: _isomap(rows, state),
        "LLE": one(
            "manifold",
            "LLE",
            lambda: Estimate(float(measure.lle(rows, neighbors=min(12, len(rows) - 1)).dimension)),
            "Where the eigenvalues jump most: weak evidence.",
        ),
        "Hessian LLE": one(
            "manifold",
            "Hessian LLE",
            lambda: by_null_space(rows),
            "The null space has one function more than dimensions.",
        ),
    }
    if picture:
        steps["picture"] = lambda: _picture(rows, state, labels)
    return [partial(guarded, name, step) for name, step in steps.items()]


def above_noise(x: Any) -> Estimate:
    """How many eigenvalues of the correlation matrix exceed what columns without correlation would show (1 %)."""
    rows = distinct_rows(x)
    n = len(rows) - 1
    middle, spread = noise_edge(n, rows.columns) if rows.columns > 1 else (float(n), 0.0)
    values = n * variances(rows, standardized=True)
    return Estimate(float((values > middle + tracy_widom_quantile(0.99) * spread).sum()))


def by_null_space(x: Any) -> Estimate:
    """The dimension whose Hessian eigenmaps have a null space parted from the rest; an error where none has."""
    found, gaps = dimension_hessian(x)
    if found == 0:
        told = ", ".join(f"{gap:.3g} at {d}" for d, gap in gaps.items()) or "none could be tried"
        raise InputError(
            f"expected a null space parted from the rest, got none (gaps: {told}): not flat, or not 2 to 4 dimensions; "
            "use another method"
        )
    return Estimate(float(found))


def _variance(rows: Any, state: Found) -> None:
    scaled = rows.unscaled()
    found = variances(scaled)
    state.rank = rank_of(found, scaled)
    unit = rows.scale**2 if 1e-150 < rows.scale < 1e150 else 1.0
    spectrum = unit * found[: state.rank]
    series = Series(
        x=tuple(float(k) for k in range(1, len(spectrum) + 1)),
        measured=tuple(spectrum.tolist()),
        x_label="direction",
        y_label="variance",
        log="y",
    )
    for share in (0.9, 0.95, 0.99):
        meaning = (
            f"So many directions hold {100 * share:.0f} % of the variance: the linear hull, in the columns' own units."
        )
        state.add(
            "variance",
            f"PCA {100 * share:.0f} %",
            Estimate(float(directions_needed(found, share))),
            meaning,
            series if share == 0.95 else None,
        )
    state.add(
        "variance",
        "participation ratio",
        dimension_participation(rows),
        "As many directions as if all shared the variance equally.",
    )
    state.add(
        "variance",
        "above the Marchenko-Pastur edge",
        above_noise(rows),
        "Directions of the columns' correlations that noise of as many rows would not have, at 1 %.",
    )


def _graph(rows: Any, state: Found) -> None:
    state.graph = nearest_neighbors(rows, min(LARGEST, len(rows) - 1))


def _twonn(state: Found) -> None:
    fit = twonn_fit(state.graph)
    some = sorted({round(place * (len(fit.logs) - 1) / 79) for place in range(80)})
    series = Series(
        x=tuple(float(fit.logs[i]) for i in some),
        measured=tuple(float(fit.heights[i]) for i in some),
        line=tuple(float(fit.estimate.value * fit.logs[i]) for i in some),
        x_label="log of r2 / r1",
        y_label="−log(1 − F)",
        line_label=f"slope {fit.estimate.value:.2f}",
    )
    state.add(
        "neighbors",
        "TwoNN",
        dimension_twonn(state.graph),
        "Ratio of the two nearest distances: the smallest scale there is; the error counts how much farther ones differ. The "
        f"largest {100 * fit.discarded:.0f} % of ratios are left out; the law misses the rest by {fit.misfit:.3f} at "
        "most.",
        series,
    )


def _scales(state: Found) -> None:
    state.curve = curve = gride_curve(state.graph)
    series = Series(
        x=tuple(e.scale or 0.0 for e in curve),
        measured=tuple(e.value for e in curve),
        stderr=tuple(e.stderr for e in curve),
        x_label="distance",
        y_label="dimension",
        log="x",
    )
    for power, found in enumerate(curve):
        near = 2**power
        state.add(
            "scales", f"neighbors {near} and {2 * near}", found, "Gride: the dimension seen at this distance.", series
        )


def _copies(state: Found) -> None:
    state.copies = found = near_copies(state.graph)
    if found is not None:
        state.add(
            "neighbors",
            WITHOUT_COPIES,
            dimension_calibrated(found.rows),
            f"As calibrated TwoNN, one row of each group closer than {found.radius:.3g}: {len(found.rows):,} rows.",
        )


def _local(state: Found) -> None:
    near = min(30, state.graph.count)
    found = local_pca(state.graph, neighbors=near)
    state.add(
        "manifold", "local PCA 95 %", found.needed, f"Directions that hold 95 % of the variance among {near} neighbors."
    )
    state.add(
        "manifold",
        "local participation ratio",
        found.participation,
        f"As if so many directions shared the variance; {near} neighbors show {near - 1} at most.",
    )


def _mixture(rows: Any, state: Found) -> None:
    found = gaussian_mixture(rows)
    pieces = "one piece" if found.components == 1 else f"{found.components} pieces"
    state.add(
        "manifold",
        "Gaussian mixture",
        found.dimension,
        f"BIC chooses {pieces}{' ' + found.note if found.note else ''}; directions that hold 95 % of the variance in "
        "each, averaged by weight.",
    )


def _isomap(rows: Any, state: Found) -> None:
    found = isomap(rows, neighbors=min(10, len(rows) - 1))
    series = Series(
        x=tuple(float(d) for d in range(1, len(found.residuals) + 1)),
        measured=found.residuals,
        x_label="coordinates",
        y_label="residual variance",
    )
    state.add(
        "manifold",
        "Isomap",
        Estimate(float(found.dimension)),
        f"The last coordinate that explains geodesic distances notably better. {found.note}".strip(),
        series,
    )


def _picture(rows: Any, state: Found, labels: Any) -> None:
    most = 600
    found = list(planar_embeddings(rows, most=most))
    state.skipped += [Skipped(f"{quality.name} in the plane", quality.failure) for quality in found if quality.failure]
    best = max(found, key=lambda quality: quality.score)
    state.plane = Plane(
        best.name,
        _pairs(best.coordinates),
        _labels(labels, rows.sample(most)),
        best.trustworthiness,
        best.continuity,
        {quality.name: quality.score for quality in found if not quality.failure},
    )


def _pairs(places: NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    return tuple((float(x), float(y)) for x, y in places)


def _labels(labels: Any, rows: Any) -> tuple[str, ...]:
    if labels is None:
        return ()
    told: Sequence[Any] = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if len(told) != rows.given:
        raise InputError(f"expected one label a row, {rows.given}, got {len(told)}; pass them in the order of the rows")
    return tuple(str(told[place]) for place in rows.kept.tolist())
