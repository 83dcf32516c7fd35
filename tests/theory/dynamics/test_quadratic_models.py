"""First-order perturbation theory of quadratic models against flows, and what it refuses."""

import numpy as np
import pytest
from scipy.integrate import quad_vec

from theodolite.construct.dynamics import quadratic_problem, quadratic_slope
from theodolite.measure.experiments import flow_limit, flowed
from theodolite.theory.dynamics import (
    QuadraticProblem,
    feature_drift,
    label_deformation,
    linear_flow_limit,
    minimizer_correction,
    parallel_correction,
    perpendicular_correction,
)


@pytest.mark.parametrize("instance", range(3))
def test_errors_of_the_first_order_shrink_with_epsilon(instance):
    problem, start = quadratic_problem(instance, parameter_count=7, samples=3)
    linear = linear_flow_limit(problem.features, problem.targets, start)
    expected = parallel_correction(problem, start) + perpendicular_correction(problem, start)
    errors = [
        np.linalg.norm((flow_limit(quadratic_slope(problem, e), start) - linear) / e - expected)
        for e in (1e-3, 5e-4, 1e-4)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(5.0, rel=0.1)


def test_labels_deformed_by_epsilon_give_the_parallel_part_exactly():
    problem, start = quadratic_problem(0, parameter_count=7, samples=3)
    limit = linear_flow_limit(problem.features, problem.targets, start)
    deformed = linear_flow_limit(problem.features, problem.targets + 0.1 * label_deformation(problem, limit), start)
    np.testing.assert_allclose(deformed, limit + 0.1 * parallel_correction(problem, start), atol=1e-14)


def test_closed_form_of_the_perpendicular_drift_is_the_integral_along_the_linear_path():
    problem, start = quadratic_problem(2, parameter_count=7, samples=3)
    phi = problem.features
    limit = linear_flow_limit(phi, problem.targets, start)
    values, vectors = np.linalg.eigh(phi @ phi.T)

    def rate(t):
        theta = limit + vectors @ (np.exp(-t * values.clip(0)) * (vectors.T @ (start - limit)))
        return -np.einsum("aij,j,a->i", problem.second_derivatives, theta, phi.T @ theta - problem.targets)

    outside = np.eye(7) - phi @ np.linalg.pinv(phi)
    np.testing.assert_allclose(
        perpendicular_correction(problem, start), outside @ quad_vec(rate, 0, 80, epsabs=1e-11)[0], atol=1e-8
    )


def test_minimum_without_interpolation_moves_by_the_residual_term_too():
    problem, start = quadratic_problem(1, parameter_count=3, samples=6)
    errors = []
    for e in (2e-4, 1e-4):
        change = flow_limit(quadratic_slope(problem, e), start) - flow_limit(quadratic_slope(problem, 0.0), start)
        errors.append(np.linalg.norm(change / e - minimizer_correction(problem)))
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)


def test_feature_drift_at_a_time_and_in_the_end():
    problem, start = quadratic_problem(0, parameter_count=7, samples=3)
    F = problem.second_derivatives[1]
    for time in (0.3, 2.0):
        moved = flowed(quadratic_slope(problem, 0.0), start, time=time) - start
        np.testing.assert_allclose(feature_drift(F, problem, start=start, time=time), F @ moved, atol=1e-8)
    whole = linear_flow_limit(problem.features, problem.targets, start) - start
    np.testing.assert_allclose(feature_drift(F, problem, start=start), F @ whole, atol=1e-12)


def test_what_theory_does_not_cover_is_refused():
    fits, start = quadratic_problem(0, parameter_count=7, samples=3)
    misses, other = quadratic_problem(0, parameter_count=3, samples=6)
    with pytest.raises(ValueError, match="expected targets that the linear model fits"):
        parallel_correction(misses, other)
    with pytest.raises(ValueError, match="no minimizer near"):
        minimizer_correction(fits)
    with pytest.raises(ValueError, match="expected symmetric"):
        QuadraticProblem(np.ones((2, 1)), np.array([[[0.0, 1.0], [0.0, 0.0]]]), np.ones(1))
    with pytest.raises(ValueError, match="expected features"):
        QuadraticProblem(np.ones((2, 1)), np.ones((1, 2, 2)), np.ones(2))
    assert np.isfinite(start).all()
