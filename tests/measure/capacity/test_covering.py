import itertools

import pytest
import torch

from theodolite.measure.capacity import (
    distances,
    embedding,
    gaussian_map,
    greedy_cover,
    lipschitz_code,
    pair_distances,
    zigzags,
)
from theodolite.theory.capacity import (
    contraction_bound,
    cube_entropy_number,
    embedding_dimension,
    separated_points_bounds,
)


def best_radius(points, balls):
    """The best cover with centers among the points, by trying every choice of them."""
    table = torch.cdist(points, points)
    return min(float(table[list(choice)].amin(0).max()) for choice in itertools.combinations(range(len(points)), balls))


@pytest.mark.parametrize("balls", [1, 2, 3, 4])
def test_greedy_is_within_a_factor_two_of_brute_force(balls):
    points = torch.randn(14, 2, generator=torch.Generator().manual_seed(balls), dtype=torch.float64)
    radius = float(greedy_cover(points, count=balls).radii[-1])
    best = best_radius(points, balls)
    assert best <= radius * (1 + 1e-12)
    assert radius <= 2 * best
    # centers elsewhere can halve the radius at most, and the interval knows it
    low, high = radius / 2, radius
    assert low <= best <= high


def test_centers_are_as_far_apart_as_the_radius_before():
    points = torch.randn(200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cover = greedy_cover(points, count=20)
    gaps = torch.pdist(points[cover.centers])
    assert float(gaps.min()) == pytest.approx(float(cover.radii[-2]))
    assert (cover.radii.diff() <= 0).all()


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 5])
def test_the_code_follows_random_lipschitz_functions(bits):
    steps = 60
    slopes = 2 * torch.rand(500, steps, generator=torch.Generator().manual_seed(bits), dtype=torch.float64) - 1
    values = torch.cat([torch.zeros(500, 1, dtype=torch.float64), slopes.cumsum(1) / steps], 1)
    back = lipschitz_code(values, bits=bits)
    assert float((back - values).abs().max()) <= 1 / (bits + 1) + 1e-12
    assert len(torch.unique((back * 1e6).round(), dim=0)) <= 2**bits


def test_the_code_keeps_double_precision():
    # the steepest function is a whole step off at every node, to the last digit
    line = torch.linspace(0, 1, 73, dtype=torch.float64)[None]
    for bits in (2, 5):
        assert float((line - lipschitz_code(line, bits=bits)).abs().max()) == pytest.approx(1 / (bits + 1), abs=1e-14)


def test_a_code_wants_a_grid_that_fits():
    with pytest.raises(ValueError, match="expected a multiple of 3 steps"):
        lipschitz_code(torch.zeros(1, 6), bits=2)


def test_zigzags_are_all_there():
    found = zigzags(4, refine=2)
    assert found.shape == (16, 9)
    assert len(torch.unique(found, dim=0)) == 16
    assert (found.diff(dim=1).abs() == 1 / 8).all()


def test_distances_in_three_norms():
    points, origin = torch.tensor([[3.0, 4.0]]), torch.zeros(2)
    assert [float(distances(points, origin, norm)) for norm in ("sup", "euclidean", "rms")] == pytest.approx(
        [4, 5, 12.5**0.5]
    )


def test_pair_distances_of_near_points_keep_their_digits():
    points = torch.tensor([[1e3, 0.0], [1e3, 1e-9], [-1e3, 5.0]], dtype=torch.float64)
    assert pair_distances(points)[0] == pytest.approx(1e-9, rel=1e-6)
    cloud = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(pair_distances(cloud), torch.pdist(cloud), rtol=1e-12)


def test_random_maps_keep_distances_but_are_not_lipschitz_off_the_points():
    k = 256
    matrix = gaussian_map(k, embedding_dimension(k), generator=torch.Generator().manual_seed(0))
    found = embedding(matrix, torch.eye(k, dtype=torch.float64))
    assert found.distortion < 2
    assert found.lipschitz > 1.2  # scaled to 1-Lipschitz on the points it still stretches other directions


def test_no_projection_beats_the_bound_on_the_simplex():
    basis = torch.linalg.qr(torch.randn(64, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64))[0].T
    found = embedding(basis - basis.mean(1, keepdim=True), torch.eye(64, dtype=torch.float64))
    assert found.least < contraction_bound(64, 12)
    assert contraction_bound(5, 50) == 1.0


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="expected points of shape"):
        greedy_cover(torch.zeros(3), count=1)
    with pytest.raises(ValueError, match="expected between 1 and 3 balls"):
        greedy_cover(torch.zeros(3, 1), count=4)
    with pytest.raises(ValueError, match="expected at least two different points"):
        embedding(torch.eye(2), torch.ones(3, 2))
    with pytest.raises(ValueError, match="expected a multiple of 2 bits"):
        cube_entropy_number(2, 3)
    assert separated_points_bounds(1, 2.0) == (2.0, 5.0)
