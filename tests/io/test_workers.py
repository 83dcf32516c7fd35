"""The same answers on one core, on several, and on real Dask and Ray clusters."""

import time

import pytest

from theodolite.io.workers import completed


def square(x):
    return x * x


def wait_for(path, mine):
    """The first task ends only when the second's result was seen; were results held back in order, it never would be."""
    deadline = time.monotonic() + 120
    while mine == 0 and not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return mine


def test_one_worker_keeps_the_order():
    assert list(completed(square, [(i,) for i in range(5)])) == [(i, i * i) for i in range(5)]


def test_two_workers_give_every_result():
    assert sorted(completed(square, [(i,) for i in range(20)], jobs=2)) == [(i, i * i) for i in range(20)]


def test_results_come_as_they_are_ready(tmp_path):
    seen = tmp_path / "seen"
    order = []
    for index, _ in completed(wait_for, [(seen, 0), (seen, 1)], jobs=2):
        order.append(index)
        seen.touch()
    assert order == [1, 0]


def test_nothing_to_do():
    assert list(completed(square, [], jobs=2)) == []


def test_errors_travel():
    with pytest.raises(TypeError):
        list(completed(square, [("a", "b")], jobs=2))


@pytest.mark.parametrize("keywords", [{"jobs": 0}, {"jobs": -3}, {"backend": "threads"}])
def test_bad_settings_get_one_line(keywords):
    with pytest.raises(ValueError, match="^expected"):
        list(completed(square, [(1,)], **keywords))


@pytest.mark.filterwarnings("ignore")
def test_an_existing_dask_client_is_used():
    import distributed

    with distributed.Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        assert sorted(completed(square, [(3,), (4,)], jobs=2, backend="dask")) == [(0, 9), (1, 16)]
        assert client.status == "running"
