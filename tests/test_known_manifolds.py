"""The 24 manifolds: as many columns as they should span, and tangent spaces of the dimension they claim."""

import numpy as np
import pytest
import torch
from benchmarks.known_manifolds import benchmark_manifolds

from theodolite.measure.dimension import dimension_twonn, linear_rank, near_copies

KNOWN_MANIFOLDS = benchmark_manifolds()

HULLS = {
    "sphere 10": 11,
    "affine 3": 3,
    "helix": 3,
    "swiss roll": 3,
    "curled 6": 12,
    "cube surface 24": 25,
    "crossed 18": 36,
}


def test_there_are_twenty_four_and_draws_repeat():
    assert len(KNOWN_MANIFOLDS) == 24
    for name, known in KNOWN_MANIFOLDS.items():
        one, other = (known.points(50, generator=torch.Generator().manual_seed(3)) for _ in range(2))
        assert name == known.name
        assert torch.equal(one, other)
        assert one.shape[1] >= known.dimension
        assert bool(torch.isfinite(one).all())


@pytest.mark.parametrize("name", HULLS)
def test_the_linear_hull_is_known(name):
    assert linear_rank(KNOWN_MANIFOLDS[name].points(400, generator=torch.Generator().manual_seed(0))) == HULLS[name]


@pytest.mark.parametrize("name", ["wound circle", "helicoid", "moebius band", "paraboloid 3"])
def test_tangent_spaces_have_the_dimension(name):
    known = KNOWN_MANIFOLDS[name]
    x = known.points(200_000, generator=torch.Generator().manual_seed(0)).numpy()
    ranks = []
    for row in x[:15]:
        near = x[np.argsort(((x - row) ** 2).sum(1))[:40]]
        values = np.linalg.svd(near - near.mean(0), compute_uv=False)
        ranks.append(int((values[: known.dimension + 1] > 0.1 * values[0]).sum()))
    assert np.median(ranks) == known.dimension


@pytest.mark.parametrize("name", ["concentrated 4", "curled 4", "curled 6"])
def test_nearest_neighbors_of_many_rows_read_the_dimension(name):
    known = KNOWN_MANIFOLDS[name]
    x = known.points(20_000, generator=torch.Generator().manual_seed(0))
    assert dimension_twonn(x, rule="likelihood").value == pytest.approx(known.dimension, rel=0.05)


@pytest.mark.parametrize("name", KNOWN_MANIFOLDS)
def test_bends_and_edges_are_not_taken_for_near_duplicates(name):
    assert near_copies(KNOWN_MANIFOLDS[name].points(400, generator=torch.Generator().manual_seed(0))) is None


def test_near_duplicates_are_found_and_left_out():
    g = torch.Generator().manual_seed(0)
    x = KNOWN_MANIFOLDS["sphere 10"].points(300, generator=g)
    for copies in (2, 3, 6):
        some = torch.cat([x] + [x + 1e-3 * torch.randn(x.shape, generator=g, dtype=x.dtype) for _ in range(copies - 1)])
        found = near_copies(some)
        assert len(found.rows) == 300
        assert found.share == 1.0
        assert 1e-3 < found.radius < 0.5
