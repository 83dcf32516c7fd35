import numpy as np
import pytest

from theodolite.construct.capacity import lipschitz_extension


def steepness(x, y):
    i, j = np.triu_indices(len(x), 1)
    return (np.linalg.norm(y[i] - y[j], axis=1) / np.linalg.norm(x[i] - x[j], axis=1)).max()


@pytest.mark.parametrize(("inner", "outer"), [(6, 3), (3, 6), (5, 5)])
@pytest.mark.parametrize("leaning", [False, True])
def test_the_whole_map_is_no_steeper_than_what_was_given(inner, outer, leaning):
    rng = np.random.default_rng(0)
    points, new = rng.standard_normal((9, inner)), rng.standard_normal((25, inner))
    images = np.tanh(points @ rng.standard_normal((inner, outer)))
    limit = steepness(points, images)
    towards = rng.standard_normal((25, outer)) if leaning else None
    found = lipschitz_extension(points, images, new, lipschitz=limit, towards=towards)
    whole = np.vstack([points, new]), np.vstack([images, found])
    assert steepness(*whole) <= limit * (1 + 1e-6)
    if leaning:  # every image lies on the sphere of one of the points before it
        radii = limit * np.linalg.norm(points - new[0], axis=1) - np.linalg.norm(images - found[0], axis=1)
        assert radii.min() == pytest.approx(0.0, abs=1e-7)


def test_points_that_are_known_keep_their_images():
    rng = np.random.default_rng(1)
    points, images = rng.standard_normal((6, 4)), rng.standard_normal((6, 2))
    found = lipschitz_extension(points, images, points[2:4], lipschitz=steepness(points, images))
    assert found == pytest.approx(images[2:4], abs=1e-6)


def test_an_isometry_of_a_simplex_has_one_extension():
    """Distances to d + 1 points fix a point: an isometry is extended by itself, to rounding and the solver's slack."""
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    points = np.vstack([np.eye(3), np.zeros((1, 3))])
    inside = np.array([[0.2, 0.3, 0.1]])
    assert lipschitz_extension(points, points @ turn, inside) == pytest.approx(inside @ turn, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.eye(2), np.eye(3), np.eye(2)), "points"),
        ((np.eye(2), np.eye(2), np.eye(3)), "points"),
        ((np.eye(2), 3 * np.eye(2), np.eye(2)), "no steeper than lipschitz=1, got 3"),
        ((np.zeros((2, 2)), np.eye(2), np.eye(2)), "no steeper"),
        ((np.eye(2) * np.nan, np.eye(2), np.eye(2)), "finite"),
    ],
)
def test_what_has_no_extension_is_refused(arguments, words):
    with pytest.raises(ValueError, match=f"^expected.*{words}"):
        lipschitz_extension(*arguments)
