"""Widest margins against scikit-learn's machine and by their conditions of optimality; log-time flows; what is refused."""

import numpy as np
import pytest
from sklearn.svm import SVC

from theodolite.construct.dynamics import separable
from theodolite.measure.experiments import separating_flow
from theodolite.theory.bias import power_tail_direction, residual_weight, widest_class_margin, widest_margin


def labelled(instance, samples=30, dimension=5, shift=0.4):
    rng = np.random.default_rng(instance)
    x, w = rng.normal(size=(samples, dimension)), rng.normal(size=dimension)
    return x, np.where(x @ w + shift > 0, 1, -1)


@pytest.mark.parametrize("instance", range(5))
def test_free_bias_is_the_support_vector_machine(instance):
    x, y = labelled(instance)
    ours = widest_margin(x, y, intercept="free")
    other = SVC(kernel="linear", C=1e9, tol=1e-9).fit(x, y)
    np.testing.assert_allclose(ours.weight, other.coef_[0], rtol=1e-4, atol=1e-4 * np.abs(ours.weight).max())
    assert abs(float(y @ ours.multipliers)) < 1e-8 * ours.multipliers.sum()
    assert (y * (x @ ours.weight + ours.bias)).min() == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("instance", range(5))
def test_conditions_of_optimality(instance):
    rows = separable(instance)
    found = widest_margin(rows)
    margins = rows @ found.weight
    assert margins.min() == pytest.approx(1.0, abs=1e-10)
    assert found.multipliers.min() >= 0
    assert np.abs(found.multipliers * (margins - 1)).max() < 1e-9
    np.testing.assert_allclose(rows.T @ found.multipliers, found.weight, atol=1e-12)
    assert found.weight @ found.weight == pytest.approx(found.multipliers.sum()) == pytest.approx(found.margin**-2)


def test_several_classes_have_the_widest_common_margin():
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(3, 4))
    y = np.arange(30) % 3
    x = centres[y] + 0.3 * rng.normal(size=(30, 4))
    W, margin = widest_class_margin(x, y, classes=3)
    logits = x @ W.T
    gaps = logits[np.arange(30), y][:, None] - logits
    gaps[np.arange(30), y] = np.inf
    assert gaps.min() == pytest.approx(1.0, abs=1e-9)
    assert margin == pytest.approx(1 / np.linalg.norm(W))
    np.testing.assert_allclose(W.sum(0), 0, atol=1e-10)
    for _ in range(200):  # no near readout with the same margin is smaller
        other = W + 0.05 * rng.normal(size=W.shape)
        seen = x @ other.T
        least = (seen[np.arange(30), y][:, None] - seen + np.where(np.eye(3)[y] > 0, np.inf, 0)).min()
        assert least / np.linalg.norm(other) <= margin + 1e-9


def test_two_classes_agree_with_two_signs():
    x, y = labelled(1, shift=0.0)
    W, margin = widest_class_margin(x, (y > 0).astype(int), classes=2)
    both = widest_margin(x, y)
    np.testing.assert_allclose(W[1] - W[0], both.weight, atol=1e-9)
    assert margin == pytest.approx(2**0.5 * both.margin)


def test_flow_to_log_t_300_keeps_the_residual_that_multipliers_fix():
    rows = separable(2)
    found = widest_margin(rows)
    w = separating_flow(rows, log_time=300.0)
    rest = w - 300.0 * found.weight
    support = rows[list(found.support)]
    np.testing.assert_allclose(support @ rest, support @ residual_weight(found, rows), atol=1e-6)


def test_power_tails_are_stationary_and_tend_to_the_widest_margin():
    rows = separable(4)
    for power in (0.5, 1.0, 3.0):
        d = power_tail_direction(rows, exponent=power)
        pull = rows.T @ (rows @ d) ** (-power - 1)
        np.testing.assert_allclose(pull / np.linalg.norm(pull), d, atol=1e-10)
    best = widest_margin(rows).weight
    best = best / np.linalg.norm(best)
    gaps = [np.linalg.norm(power_tail_direction(rows, exponent=p) - best) for p in (300.0, 3000.0)]
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.05)  # as one over the power
    assert gaps[1] < 1e-3


def test_named_outcomes():
    with pytest.raises(ValueError, match="expected classes that a plane separates"):
        widest_margin(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    with pytest.raises(ValueError, match="expected classes that a plane separates"):
        widest_margin(*labelled(0)[:1], np.where(np.arange(30) % 2, 1, -1), intercept="free")
    with pytest.raises(ValueError, match="expected finite samples"):
        widest_margin(np.array([[np.nan]]))
    with pytest.raises(ValueError, match="labels -1 or 1"):
        widest_margin(np.ones((2, 1)), np.array([0, 1]))
    with pytest.raises(ValueError, match="none, free or homogeneous"):
        widest_margin(np.ones((2, 1)), intercept="perhaps")
    with pytest.raises(ValueError, match="a power above 0"):
        power_tail_direction(np.ones((2, 1)), exponent=0.0)
    degenerate = widest_margin(np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]))  # three on the margin, one of no weight
    assert not degenerate.generic
    with pytest.raises(ValueError, match="degenerate"):
        residual_weight(degenerate, np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="look for NaN"):
        separating_flow(np.array([[np.nan]]), log_time=5.0)
