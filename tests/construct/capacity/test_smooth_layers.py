"""Smoothed ReLUs: how smooth they are, and what they are outside of the smoothing."""

import math

import numpy as np
import pytest
import torch

from theodolite.construct.capacity import SReLU


@pytest.mark.parametrize("order", [1, 2])
def test_an_order_buys_two_derivatives_and_the_next_one_jumps(order):
    """The difference of order 2k+2 across the first knot, -w: nothing but the jump of derivative 2k+1 is left in it."""
    count, spacings, sizes = 2 * order + 2, np.array([0.04, 0.06, 0.08, 0.12]), []
    for spacing in spacings:
        points = -1 + (torch.arange(count + 1, dtype=torch.float64) - count / 2) * spacing
        signs = torch.tensor([(-1.0) ** j * math.comb(count, j) for j in range(count + 1)], dtype=torch.float64)
        sizes.append(abs(float((signs * SReLU(order, smoothing_width=1.0)(points)).sum())))
    slopes = np.diff(np.log(sizes)) / np.diff(np.log(spacings))
    np.testing.assert_allclose(slopes, 2 * order + 1, rtol=1e-4)  # rounding: 1e-15 over 1e-9 at the smallest step


@pytest.mark.parametrize("order", [1, 3])
def test_outside_of_the_smoothing_it_is_relu_and_within_it_lies_above(order):
    z = torch.linspace(-2, 2, 401, dtype=torch.float64)
    found = SReLU(order, smoothing_width=0.5)(z)
    outside = z.abs() >= 0.5
    torch.testing.assert_close(found[outside], torch.relu(z)[outside], rtol=1e-9, atol=1e-9)
    assert bool((found >= torch.relu(z) - 1e-12).all()) and float(found[200]) > 0
