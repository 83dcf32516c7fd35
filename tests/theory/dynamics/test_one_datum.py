"""The recursions of one datum, their invariants and how runs are named."""

import numpy as np
import pytest

from theodolite.theory.dynamics import OneDatum, catapult_invariants, catapult_with_target, peak_time, run_outcome


def bilinear_run(u, v, *, target, lr, steps):
    """Descent on z = u.v sqrt(c) with c = 1/len(u)."""
    c = 1 / len(u)
    outputs, curvatures = [], []
    for _ in range(steps + 1):
        z = u @ v * c**0.5
        outputs.append(z)
        curvatures.append(c * (u @ u + v @ v))
        u, v = u - lr * (z - target) * v * c**0.5, v - lr * (z - target) * u * c**0.5
    return np.array(outputs), np.array(curvatures)


@pytest.mark.parametrize(("product", "target"), [(1.0, 0.0), (1.0, 0.7), (3.0, 0.7), (3.5, -2.0)])
def test_recursion_is_that_of_descent_for_fifty_steps(product, target):
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 80))
    z, lam = u @ v / 80**0.5, (u @ u + v @ v) / 80
    outputs, curvatures = bilinear_run(u, v, target=target, lr=product / lam, steps=50)
    path = catapult_with_target(z, lam, target=target, coupling=1 / 80, lr=product / lam, steps=50)
    np.testing.assert_allclose(path.outputs, outputs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(path.curvatures, curvatures, rtol=1e-9)


def test_curvature_stays_above_its_floor():
    path = catapult_with_target(1.0, 2.0, target=1.5, coupling=0.01, lr=1.6, steps=300)
    for z, lam in zip(path.outputs, path.curvatures, strict=True):
        assert min(catapult_invariants(z, lam, coupling=0.01)) >= -1e-9
    assert path.outputs[-1] == pytest.approx(1.5)
    assert path.curvatures[-1] >= 2 * 0.1 * 1.5


def test_one_datum_with_two_eigenvalues_is_the_recursion():
    z, lam, c = 0.8, 1.7, 0.02
    P, Q = catapult_invariants(z, lam, coupling=c)
    model = OneDatum(np.array([c**0.5, -(c**0.5)]), np.sqrt([c * P, c * Q]), z)
    assert model.curvature == pytest.approx(lam)
    ours, other = (
        model.path(target=0.3, lr=2.0, steps=60),
        catapult_with_target(z, lam, target=0.3, coupling=c, lr=2.0, steps=60),
    )
    np.testing.assert_allclose(ours.outputs, other.outputs, rtol=1e-9)
    np.testing.assert_allclose(ours.curvatures, other.curvatures, rtol=1e-9)


def test_edges_of_the_window_and_the_time_of_the_peak():
    for width in (1e2, 1e4, 1e8):
        inside = catapult_with_target(1.0, 1.0, target=0.0, coupling=1 / width, lr=3.99, steps=3000)
        beyond = catapult_with_target(1.0, 1.0, target=0.0, coupling=1 / width, lr=4.01, steps=3000)
        assert abs(inside.outputs[-1]) < 1e-3 * max(map(abs, inside.outputs))
        assert not abs(beyond.outputs[-1]) < 1e100
    peaks = []
    for width in (1e4, 1e6, 1e8, 1e10):
        path = catapult_with_target(1.0, 1.0, target=0.0, coupling=1 / width, lr=2.1, steps=200)
        peaks.append(int(np.argmax(np.abs(path.outputs))))
    assert peaks == [19, 44, 68, 92]
    assert peak_time(1e10, 2.1) - peak_time(1e8, 2.1) == pytest.approx(24.16, abs=0.01)
    with pytest.raises(ValueError, match="only there it catapults"):
        peak_time(100, 1.5)


@pytest.mark.parametrize(
    ("losses", "curvatures", "kind"),
    [
        ([1.0, 0.1, 1e-9], [1.0, 1.0, 1.0], "lazy"),
        ([1.0, 9.0, 1e-9], [3.0, 2.0, 1.0], "catapult"),
        ([1.0, 1e9, float("nan")], [5.0, 9.0, float("inf")], "divergent"),
        ([1.0, 1e9, 1e20], [5.0, 9.0, 1e9], "divergent"),
        ([1.0, 4e13, 2.1e13], [5.0, 9.0, 9.0], "divergent"),
        ([1.0, 4e13, 1.9e13], [5.0, 9.0, 9.0], "slow"),  # below half of the peak: it falls
        ([1.0, 9.0, 0.0], [3.0, 2.0, 0.0], "dead"),
        ([1.0, 0.9, 0.8], [1.0, 1.0, 1.0], "slow"),
    ],
)
def test_runs_are_named_with_the_numbers_that_decided(losses, curvatures, kind):
    outcome = run_outcome(losses, curvatures, lr=1.0)
    assert outcome.name == kind
    assert "step times curvature went from" in outcome.reason


def test_a_run_needs_two_steps():
    with pytest.raises(ValueError, match="expected a loss and a curvature"):
        run_outcome([1.0], [1.0], lr=1.0)


@pytest.mark.parametrize(("instance", "steps"), [(0, 3), (1, 8), (2, 40)])
def test_one_datum_moves_in_the_eigenbasis_as_descent_on_all_parameters_does(instance, steps):
    rng = np.random.default_rng(instance)
    raw, g = rng.normal(size=(24, 24)), rng.normal(size=24) / 24**0.5
    F, lr, d = 0.05 * (raw + raw.T) / 24**0.5, 2.4 / float(g @ g), np.zeros(24)
    for _ in range(steps):
        d = d - lr * (1.0 + g @ d + 0.5 * d @ F @ d - 0.4) * (g + F @ d)
    values, vectors = np.linalg.eigh(F)
    path = OneDatum(values, vectors.T @ g, 1.0).path(target=0.4, lr=lr, steps=steps)
    assert path.outputs[-1] == pytest.approx(1.0 + g @ d + 0.5 * d @ F @ d, rel=1e-9)


@pytest.mark.parametrize("product", [1.0, 3.0])
def test_a_step_of_descent_multiplies_both_invariants_by_squares(product):
    u, v = np.random.default_rng(3).normal(size=(2, 50))
    c = 1 / 50
    lr = product / (c * (u @ u + v @ v))
    outputs, curvatures = bilinear_run(u, v, target=0.3, lr=lr, steps=6)
    for k in range(6):
        now, then = (catapult_invariants(outputs[i], curvatures[i], coupling=c) for i in (k, k + 1))
        r = lr * c**0.5 * (outputs[k] - 0.3)
        np.testing.assert_allclose(then, (now[0] * (1 - r) ** 2, now[1] * (1 + r) ** 2), rtol=1e-9)


@pytest.mark.parametrize("product", [2.2, 2.5, 3.0, 3.9])
def test_outputs_have_grown_by_the_root_of_the_width_at_the_peak(product):
    assert (product - 1) ** peak_time(1e6, product) == pytest.approx(1e3)
