"""What lies outside a domain is refused in one line, by the name of the parameter."""

import math

import numpy as np
import pytest
import torch

from theodolite.measure.collapse import collapse_metrics
from theodolite.theory.capacity import contraction_bound, embedding_dimension
from theodolite.theory.dynamics import stationary_regression, step_size_edge
from theodolite.theory.kernels import certified_width, chebyshev_tail, kernel_ridge, matrix_bernstein_tail
from theodolite.theory.propagation import criticality, fixed_points, phase
from theodolite.theory.regions import interval_breakpoints

COLLINEAR = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
OUTSIDE = {
    "matrix_bernstein_tail": lambda: matrix_bernstein_tail(-2, variance=1.0, bound=1.0, dimensions=4),
    "chebyshev_tail": lambda: chebyshev_tail(-2),
    "certified_width": lambda: certified_width(1.0, smallest=-1, samples=2),
    "step_size_edge": lambda: step_size_edge(-1),
    "phase": lambda: phase("tanh", weight_variance=math.nan),
    "fixed_points": lambda: fixed_points("tanh", weight_variance=-1),
    "kernel_ridge": lambda: kernel_ridge(torch.tensor([[1.0, 5.0], [0.0, 1.0]]), torch.ones(2), ridge=1.0),
    "kernel_ridge of nothing": lambda: kernel_ridge(torch.zeros(0, 0), torch.ones(0), ridge=1.0),
    "collapse_metrics of nothing": lambda: collapse_metrics(torch.zeros(0, 2), torch.zeros(0)),
    "criticality": lambda: criticality(np.tanh),
    "interval_breakpoints": lambda: interval_breakpoints(3, bias_variance=0, low=0, high=1),
    "embedding_dimension": lambda: embedding_dimension(8, distortion=1),
    "contraction_bound": lambda: contraction_bound(1, 2),
    "stationary_regression": lambda: stationary_regression(
        COLLINEAR, np.ones(3), lr=0.01, batch_size=1, sampler="with replacement"
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_its_domain_a_function_says_what_it_expected(name):
    with pytest.raises((ValueError, TypeError), match=r"^expected[^\n]*$"):
        OUTSIDE[name]()


def test_arrays_and_whole_numbers_are_taken_where_tensors_are():
    found = kernel_ridge(np.eye(2, dtype=int), np.array([2, 4]), ridge=np.float32(1.0))
    assert found.weights.tolist() == pytest.approx([1.0, 2.0])
