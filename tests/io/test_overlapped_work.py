"""Work that overlaps: results in order, few tasks ahead, errors passed on, tensors on their way to a device in blocks."""

import threading

import pytest
import torch

from theodolite.io.formats import _format
from theodolite.io.formats._format import Place
from theodolite.io.overlapped_work import memory_given_back, one_core_each, overlapped, spare_cores


@pytest.mark.parametrize(
    "device", ["cpu", "meta"]
)  # meta: a device that threads are used for and that every machine has
def test_results_come_in_the_order_of_the_tasks(device):
    assert list(overlapped(lambda n: n**2, range(50), device=device, threads=4)) == [n**2 for n in range(50)]
    assert list(overlapped(lambda n: n, [], device=device)) == []


def test_on_a_device_several_are_at_work_and_few_are_ahead():
    begun, meeting = [], threading.Barrier(3, timeout=30)

    def work(n):
        begun.append(n)
        if n < 3:
            meeting.wait()  # passed only where three threads work at once
        return n

    found = overlapped(work, range(100), device="meta", threads=3)
    assert next(found) == 0
    assert max(begun) <= 3 + 2
    found.close()


def test_on_a_processor_threads_are_used_where_they_are_asked_for():
    meeting = threading.Barrier(2, timeout=30)

    def work(n):
        if n < 2:
            meeting.wait()
        return n

    assert list(overlapped(work, range(5), threads=2)) == list(range(5))
    assert set(overlapped(lambda n: threading.get_ident(), range(5))) == {threading.get_ident()}


def test_cores_are_those_that_the_libraries_are_told_of(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert spare_cores() >= 1
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert spare_cores() == 1


def test_libraries_work_on_one_core_inside_and_as_before_outside():
    from threadpoolctl import threadpool_info

    def counts():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = counts()
    with one_core_each():
        assert set(counts()) <= {1}
    assert counts() == before


def test_an_error_is_that_of_the_task():
    def work(n):
        if n == 5:
            raise ValueError(f"expected no {n}")
        return n

    with pytest.raises(ValueError, match="expected no 5"):
        list(overlapped(work, range(9), device="meta"))


def test_a_large_tensor_reaches_a_device_block_by_block(tmp_path, monkeypatch):
    values = torch.arange(1000, dtype=torch.float32).reshape(20, 50)
    path = tmp_path / "values"
    path.write_bytes(b"head" + values.numpy().tobytes())
    place = Place(str(path), 4, torch.float32, (20, 50))
    assert torch.equal(place.onto("cpu"), values)
    sizes, read_into = [], _format.read_into
    monkeypatch.setattr(_format, "BLOCK", 256)
    monkeypatch.setattr(_format, "read_into", lambda flat, *rest: sizes.append(len(flat)) or read_into(flat, *rest))
    assert torch.equal(place.onto("cpu"), values)
    assert sizes == [64] * 15 + [40]


def test_memory_is_given_back_without_a_word():
    held = [bytes(1 << 16) for _ in range(64)]
    assert memory_given_back() is None
    assert all(not any(part) for part in held)  # what is in use stays as it is
