"""Flows against closed forms, in time and in its logarithm."""

import numpy as np
import pytest

from theodolite.measure.experiments import (
    enumerated_batches,
    flow_limit,
    flowed,
    log_loss_times_time,
    separating_flow,
    stationary_vector,
)


def test_flow_of_a_quadratic_bowl():
    H = np.array([[2.0, 0.5], [0.5, 1.0]])
    values, vectors = np.linalg.eigh(H)
    expected = vectors @ (np.exp(-1.7 * values) * (vectors.T @ np.ones(2)))
    np.testing.assert_allclose(flowed(lambda x: H @ x, np.ones(2), time=1.7), expected, atol=1e-10)


def test_flows_that_do_not_end_are_named():
    with pytest.raises(ValueError, match="comes to rest"):
        flow_limit(lambda x: -np.ones(1), np.zeros(1), doublings=3)
    with pytest.raises(ValueError, match="stays finite"):
        flowed(lambda x: x * np.nan, np.ones(1), time=1.0)


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_one_sample_has_a_closed_form_in_log_time(size):
    w = separating_flow(np.array([[size]]), log_time=200.0)[0]  # exp(size w) = 1 + size^2 (t - 1)
    expected = (200.0 + 2 * np.log(size)) / size
    assert w == pytest.approx(expected, abs=1e-7)
    assert log_loss_times_time(np.array([[size]]), np.array([w]), log_time=200.0) == pytest.approx(size**-2, rel=1e-6)


def test_logistic_and_power_tails():
    w = separating_flow(np.array([[1.0]]), log_time=30.0, loss_tail="logistic")[0]
    assert w + np.exp(w) == pytest.approx(1 + np.exp(30.0) - 1, rel=1e-6)  # w' = 1/(1 + e^w) from 0 at t = 1
    w = separating_flow(np.array([[1.0]]), log_time=30.0, loss_tail=2.0)[0]
    assert (1 + w) ** 4 == pytest.approx(4 * (np.exp(30.0) - 1) + 1, rel=1e-6)


def test_stationary_vector_and_samplers():
    T = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 0.4, 0.6]])
    p = stationary_vector(T)
    np.testing.assert_allclose(p @ T, p, atol=1e-14)
    with pytest.raises(ValueError, match="expected a sampler"):
        enumerated_batches(3, 2, "bootstrap")
