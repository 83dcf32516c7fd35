"""The shared graph of nearest neighbors against all pairs, on data that breaks products and trees."""

import sys

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from theodolite.measure.dimension import distinct_rows, nearest_neighbors, neighbor_graph, neighbors_of

METHODS = ("auto", "tree", "products", "blocks")


def flat(n=400, d=5, columns=40, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) @ np.linalg.qr(random.normal(size=(columns, d)))[0].T


def clumps():
    random = np.random.default_rng(1)
    return np.repeat(random.normal(size=(20, 40)), 20, 0) + 1e-9 * random.normal(size=(400, 40))


def off_the_plane():
    x = flat(n=600, d=2, columns=6)
    x[7] += 0.3  # not among the rows by which the plane is known
    return x


TABLES = {
    "flat": flat(),
    "off the plane": off_the_plane(),
    "full rank": np.random.default_rng(2).normal(size=(400, 40)),
    "shifted by 1e5": flat() + 1e5,
    "scaled by 1e-8": 1e-8 * flat(),
    "scaled by 1e-170": 1e-170 * flat(),
    "tight clumps": clumps(),
    "whole numbers": np.random.default_rng(3).integers(0, 4, size=(500, 5)),
    "single precision": flat().astype(np.float32),
    "one column": np.random.default_rng(4).normal(size=(300, 1)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("table", TABLES)
def test_neighbors_are_those_of_all_pairs(table, method):
    x = TABLES[table]
    graph = nearest_neighbors(x, 12, method=method)
    points = x[graph.rows.kept.numpy()].astype(np.float64)
    unit = np.abs(points).max() if table == "scaled by 1e-170" else 1.0  # scipy's squares would underflow
    apart = cdist(points / unit, points / unit) * unit
    np.fill_diagonal(apart, np.inf)
    truth = np.sort(apart, axis=1)[:, :12]
    np.testing.assert_allclose(graph.distances, truth, rtol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(apart, graph.indices, 1), truth, rtol=1e-9)
    assert all(len(set(row)) == 12 and place not in row for place, row in enumerate(graph.indices.tolist()))


def test_the_tree_is_chosen_where_the_data_spans_few_directions(monkeypatch):
    assert nearest_neighbors(TABLES["flat"], 3).method == "kd-tree in 5 dimensions"
    assert nearest_neighbors(TABLES["full rank"], 3).method == "blocked products on cpu"
    monkeypatch.setattr(neighbor_graph, "FEW", 10)  # as of many rows
    assert nearest_neighbors(TABLES["full rank"], 3).method == "matrix products"


def test_noise_in_all_columns_and_rows_far_outside_keep_the_tree_exact():
    rng = np.random.default_rng(0)
    x = np.zeros((1500, 30))
    x[:, :3] = rng.uniform(size=(1500, 3))
    x += 1e-3 * rng.normal(size=x.shape)
    x[1:11, 3:] += 0.2 * rng.normal(size=(10, 27))  # their neighbors are not those of the plane: settled one by one
    found = nearest_neighbors(x, 2)
    everyone = cdist(x, x)
    np.fill_diagonal(everyone, np.inf)
    assert found.method == "kd-tree in 3 dimensions"
    np.testing.assert_allclose(found.distances, np.sort(everyone, axis=1)[:, :2], rtol=1e-12)


def test_repeated_rows_and_constant_columns_are_removed_and_said():
    x = flat()
    table = np.column_stack([np.concatenate([x, x[:40], x[:40]]), np.full(480, 3.0)])
    rows = distinct_rows(table)
    assert (len(rows), rows.given, rows.duplicates, rows.constant) == (400, 480, 80, 1)
    assert rows.kept.tolist() == list(range(400))
    assert "80 of 480 rows repeat" in " ".join(rows.notes)
    assert "1 constant column" in " ".join(rows.notes)


def test_minus_zero_is_zero():
    assert distinct_rows(np.array([[0.0, 1], [-0.0, 1], [1, 2], [2, 3], [4, 4]])).duplicates == 1


@pytest.mark.parametrize(("dtype", "word"), [(torch.float16, "11 binary digits"), (torch.int32, "whole numbers")])
def test_coarse_numbers_are_said(dtype, word):
    x = (10 * torch.from_numpy(flat())).to(dtype)
    assert any(word in note for note in nearest_neighbors(x, 3).notes)


def test_ties_are_said():
    lattice = np.stack(np.meshgrid(np.arange(12), np.arange(12)), -1).reshape(-1, 2)
    assert nearest_neighbors(lattice, 4).ties == 1.0


def test_bad_rows_are_named():
    x = flat()
    x[7, 3], x[11, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"expected finite numbers.*rows 7, 11 \(2 of 400\)"):
        distinct_rows(x)
    with pytest.raises(ValueError, match="at least 4 distinct rows"):
        distinct_rows(np.ones((50, 3)))
    with pytest.raises(TypeError, match="expected real numbers"):
        distinct_rows(np.array([["a"], ["b"]]))
    with pytest.raises(ValueError, match="expected from 1 to 399"):
        nearest_neighbors(flat(), 400)
    with pytest.raises(ValueError, match="expected a method"):
        nearest_neighbors(flat(), 4, method="quick")
    with pytest.raises(ValueError, match="at least 9 neighbors"):
        neighbors_of(nearest_neighbors(flat(), 4), 9)


def test_approximate_neighbors_need_their_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(ImportError, match="expected pynndescent"):
        nearest_neighbors(flat(), 4, method="approximate")


def test_approximate_neighbors_tell_their_recall(monkeypatch):
    class Library:
        class NNDescent:
            def __init__(self, table, n_neighbors, random_state):
                apart = cdist(table, table)
                order = apart.argsort(1)
                order[::2, 5:17] = order[::2, -12:]  # half of the rows are given the wrong far neighbors
                self.neighbor_graph = order[:, :n_neighbors].astype(np.int32), None

    monkeypatch.setitem(sys.modules, "pynndescent", Library)
    graph = nearest_neighbors(flat(), 8, method="approximate")
    assert 0.6 < graph.recall < 0.9
    assert any("% are the true ones" in note for note in graph.notes)


def test_the_users_precision_of_products_is_left_alone():
    before = torch.get_float32_matmul_precision()
    nearest_neighbors(flat(), 4, method="blocks")
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("table", ["flat", "full rank", "tight clumps"])
def test_the_neighbors_of_a_few_rows_are_those_in_the_graph_of_all(table, method):
    few, whole = nearest_neighbors(TABLES[table], 5, method=method, asked=70), nearest_neighbors(TABLES[table], 5)
    assert len(few) == len(few.asked) == 70 < len(whole) and whole.asked is None
    np.testing.assert_allclose(few.distances, whole.distances[few.asked], rtol=1e-9)
    np.testing.assert_array_equal(few.indices, whole.indices[few.asked])
