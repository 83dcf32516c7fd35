"""Formulas of regions against each other, quadrature and direct simulation without networks."""

import math

import numpy as np
import pytest

from theodolite.theory.regions import (
    curve_zeros,
    frozen_gate_breakpoints,
    hyperplane_cells,
    interval_bound,
    interval_breakpoints,
    line_pieces,
    line_regions,
    region_bound,
    segment_breakpoints,
    swept_angle,
)


def test_cells_by_adding_one_hyperplane_at_a_time():
    """A new hyperplane splits as many cells as it is itself cut into: C(n, d) = C(n-1, d) + C(n-1, d-1)."""
    for n in range(1, 12):
        for d in range(1, 6):
            assert hyperplane_cells(n, d) == hyperplane_cells(n - 1, d) + hyperplane_cells(n - 1, d - 1)


def test_bounds_are_ordered():
    for widths in ((3, 3), (2, 2, 2), (5, 1, 7), (9,)):
        assert line_pieces(widths) <= line_regions(widths) <= 1 + sum(widths) <= region_bound(widths, 1)
        assert region_bound(widths, 2) <= 2 ** sum(widths)
        assert line_regions(widths, with_bias=False) <= line_regions(widths)


def test_frozen_gates_by_drawing_the_affine_maps():
    random, widths, nets = np.random.default_rng(0), (4, 5, 3), 40_000
    constant, slope = np.zeros((nets, 1)), np.ones((nets, 1))  # of the input itself
    zeros = 0.0
    for layer, width in enumerate(widths):
        weight = random.normal(0, math.sqrt(2 / constant.shape[1]), (nets, width, constant.shape[1]))
        gates = random.integers(0, 2, constant.shape) if layer else 1
        constant = np.einsum("nij,nj->ni", weight, gates * constant) + random.normal(0, 0.5, (nets, width))
        slope = np.einsum("nij,nj->ni", weight, gates * slope)
        with np.errstate(divide="ignore"):
            root = -constant / slope
        zeros += ((root > -1) & (root < 2)).sum() / nets
    told = frozen_gate_breakpoints(widths, bias_variance=0.25, low=-1, high=2, draws=20_000)
    assert abs(told.value - zeros) < 4 * math.hypot(told.stderr, 0.012)


def test_wide_limit_and_bound():
    wide = frozen_gate_breakpoints((200, 200), bias_variance=1.0, low=-1, high=1, draws=400)
    limit = sum(interval_breakpoints(200, bias_variance=1.0, low=-1, high=1, layer=k) for k in (1, 2))
    assert wide.value == pytest.approx(limit, rel=0.01)
    assert limit < interval_bound(400, bias_variance=1.0, length=2)
    narrow = interval_breakpoints(10, bias_variance=1.0, low=-1e-4, high=1e-4)
    assert narrow == pytest.approx(10 * 2e-4 * math.sqrt(2) / math.pi, rel=1e-6)


def test_segments_of_one_input_are_intervals():
    low, high, bias = -1.0, 2.0, 0.7
    gram = np.outer([low, high], [low, high])
    own = segment_breakpoints((10, 10, 10), gram, weight_variances=(2, 2, 2), bias_variances=(bias**2,) * 3)
    told = [interval_breakpoints(10, bias_variance=bias**2, low=low, high=high, layer=k) for k in (1, 2, 3)]
    assert own == pytest.approx(told, rel=1e-12)


def test_angles_and_curves():
    K = np.array([[2.0, 0.3], [0.3, 1.0]])
    root = np.linalg.cholesky(K)
    curve = [root.T @ [1.0, t] for t in np.linspace(-1, 3, 50)]
    assert curve_zeros(curve) == pytest.approx(float(swept_angle(K, [[1.0, -1.0], [1.0, 3.0]])) / math.pi, rel=1e-12)
