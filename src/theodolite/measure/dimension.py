"""Intrinsic dimension of data: every estimator under one roof; each returns an `Estimate` of value, error and scale."""

from theodolite.measure.dimension_calibrated import dimension_calibrated
from theodolite.measure.dimension_linear import (
    dimension_local_pca,
    dimension_parallel,
    dimension_participation,
    dimension_pca,
    directions_needed,
    gaussian_mixture,
    linear_rank,
    local_pca,
    rank_of,
    variances,
)
from theodolite.measure.dimension_neighbours import (
    TwoNN,
    dimension_correlation,
    dimension_gride,
    dimension_mle,
    dimension_twonn,
    gride_curve,
    shared_error,
    twonn_fit,
)
from theodolite.measure.neighbours import Neighbours, nearest_neighbours
from theodolite.measure.rows import Rows, distinct_rows

__all__ = [
    "Neighbours", "Rows", "TwoNN", "dimension_calibrated", "dimension_correlation", "dimension_gride",
    "dimension_local_pca", "dimension_mle", "dimension_parallel", "dimension_participation", "dimension_pca",
    "dimension_twonn", "directions_needed", "distinct_rows", "gaussian_mixture", "gride_curve", "linear_rank", "local_pca",
    "nearest_neighbours", "rank_of", "shared_error", "twonn_fit", "variances",
]  # fmt: skip
