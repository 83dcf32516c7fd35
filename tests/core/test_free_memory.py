from pathlib import Path

import pytest

from theodolite.core import free_memory


def test_free_memory_is_what_the_machine_or_its_group_leaves(monkeypatch):
    monkeypatch.setattr(free_memory, "_free_on_machine", lambda: 700)
    monkeypatch.setattr(free_memory, "_free_in_group", lambda: 300)
    assert free_memory.free_bytes() == 300


@pytest.mark.parametrize(("limit", "left"), [("1000\n", 600), ("100\n", 0), ("max\n", 1 << 62), (None, 1 << 62)])
def test_a_limit_of_the_group_counts_where_there_is_one(monkeypatch, tmp_path, limit, left):
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text("400\n")
    monkeypatch.setattr(free_memory, "Path", lambda _: tmp_path)
    assert free_memory._free_in_group() == left


def test_available_pages_are_read_where_the_system_counts_them(monkeypatch, tmp_path):
    told = tmp_path / "meminfo"
    told.write_text("MemTotal: 10 kB\nMemAvailable:  7 kB\n")
    monkeypatch.setattr(free_memory, "Path", lambda _: told)
    assert free_memory._free_on_machine() == 7 * 1024
    monkeypatch.setattr(free_memory, "Path", lambda _: Path(tmp_path / "none"))
    assert free_memory._free_on_machine() > 0
