"""Widest margins against scikit-learn's machine and by their conditions of optimality; log-time flows; what is refused."""

import itertools

import numpy as np
import pytest
from sklearn.svm import SVC

from theodolite.construct.dynamics import separable
from theodolite.measure.experiments import separating_flow
from theodolite.theory.bias import power_tail_direction, residual_weight, widest_class_margin, widest_margin


def labeled(instance, samples=30, dimension=5, shift=0.4):
    rng = np.random.default_rng(instance)
    x, w = rng.normal(size=(samples, dimension)), rng.normal(size=dimension)
    return x, np.where(x @ w + shift > 0, 1, -1)


@pytest.mark.parametrize("instance", range(5))
def test_free_bias_is_the_support_vector_machine(instance):
    x, y = labeled(instance)
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
    centers = 3 * rng.normal(size=(3, 4))
    y = np.arange(30) % 3
    x = centers[y] + 0.3 * rng.normal(size=(30, 4))
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
    x, y = labeled(1, shift=0.0)
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


@pytest.mark.parametrize("instance", range(3))
def test_a_narrow_margin_is_known_to_rounding(instance):
    rng = np.random.default_rng(instance)
    x = rng.normal(size=(12, 4))
    x[:, 0] = 1e-5 * (1 + rng.random(12))
    assert (x @ widest_margin(x).weight).min() == pytest.approx(1.0, abs=1e-9)


def test_named_outcomes():
    with pytest.raises(ValueError, match="expected classes that a plane separates"):
        widest_margin(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    with pytest.raises(ValueError, match="expected classes that a plane separates"):
        widest_margin(*labeled(0)[:1], np.where(np.arange(30) % 2, 1, -1), intercept="free")
    with pytest.raises(ValueError, match="expected finite"):
        widest_margin(np.array([[np.nan]]))
    with pytest.raises(ValueError, match="labels -1 or 1"):
        widest_margin(np.ones((2, 1)), np.array([0, 1]))
    with pytest.raises(ValueError, match="none, free, homogeneous"):
        widest_margin(np.ones((2, 1)), intercept="perhaps")
    with pytest.raises(ValueError, match="a power above 0"):
        power_tail_direction(np.ones((2, 1)), exponent=0.0)
    degenerate = widest_margin(np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]))  # three on the margin, one of no weight
    assert not degenerate.generic
    with pytest.raises(ValueError, match="degenerate"):
        residual_weight(degenerate, np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="signed_x to be finite"):
        separating_flow(np.array([[np.nan]]), log_time=5.0)


def least_by_trying(rows):
    """The least |w| with rows w >= 1: the best of the least-norm solutions of all sets of equations that satisfy the rest."""
    best, support = None, ()
    for size in range(1, min(rows.shape) + 1):
        for chosen in itertools.combinations(range(len(rows)), size):
            w = np.linalg.pinv(rows[list(chosen)]) @ np.ones(size)
            if (rows @ w).min() > 1 - 1e-9 and (best is None or w @ w < best @ best * (1 - 1e-9)):
                best, support = w, chosen
    return best, support


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("instance", range(4))
def test_the_widest_margin_is_the_best_of_all_sets_of_support_vectors(instance, scale):
    x, y = labeled(instance, samples=9, dimension=3, shift=0.0)
    rows = scale * x * y[:, None]
    w, support = least_by_trying(rows)
    found = widest_margin(scale * x, y)
    np.testing.assert_allclose(found.weight, w, rtol=1e-8)
    assert found.support == support
    assert found.generic
    expected = np.zeros(9)
    expected[list(support)] = np.linalg.solve(rows[list(support)] @ rows[list(support)].T, np.ones(len(support)))
    np.testing.assert_allclose(found.multipliers, expected, rtol=1e-8, atol=1e-12 * expected.max())


@pytest.mark.parametrize("instance", range(3))
def test_a_homogeneous_bias_is_one_more_coordinate_of_every_sample(instance):
    x, y = labeled(instance, samples=9, dimension=2, shift=0.3)
    w, support = least_by_trying(np.hstack([x, np.ones((9, 1))]) * y[:, None])
    found = widest_margin(x, y, intercept="homogeneous")
    np.testing.assert_allclose([*found.weight, found.bias], w, rtol=1e-8)
    assert found.support == support


def test_dependent_support_vectors_and_idle_ones_on_the_margin_are_not_generic():
    square = np.array(
        [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, -1.0]]
    )  # four in three dimensions
    found = widest_margin(square)
    assert not found.generic
    np.testing.assert_allclose(found.weight, [1.0, 0.0, 0.0], atol=1e-12)
    near = widest_margin(np.array([[1.0, 0.0], [1.0 + 1e-4, 5.0]]))
    assert near.generic
    assert near.support == (0,)
