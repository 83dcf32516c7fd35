"""One store: what was found is not computed again, and a crash loses at most the record being written."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from theodolite.io.store import Store


def filled(folder):
    store = Store(folder)
    store.put("a", {"x": (1, float("inf"))}, fingerprint="one", arrays={"v": np.arange(3.0)})
    store.put("b", "ü", fingerprint="two")
    return store


def test_values_and_arrays_outlive_the_process(tmp_path):
    filled(tmp_path)
    again = Store(tmp_path)
    assert list(again) == ["a", "b"]
    assert again.get("a", "one").value == {"x": [1, None]}
    assert again.get("a", "one").arrays["v"].tolist() == [0, 1, 2]
    assert again.get("b", "two").value == "ü"


def test_another_fingerprint_is_not_known_and_replaces(tmp_path):
    store = filled(tmp_path)
    assert store.get("a", "other") is None
    assert store.get("c") is None
    store.put("a", 5, fingerprint="other")
    again = Store(tmp_path)
    assert again.get("a", "one") is None
    assert again.get("a", "other").value == 5
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) == 2  # the one that was replaced is gone


def test_what_is_not_durable_or_has_no_folder_stays_in_memory(tmp_path):
    store = Store(tmp_path)
    store.put("a", 1, arrays={"v": np.zeros(2)}, durable=False)
    assert store.get("a").value == 1
    assert not list(tmp_path.rglob("*"))
    lone = filled(None)
    assert lone.get("a", "one").arrays["v"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("damage", [b"", b"x"])
def test_a_damaged_array_is_not_known(tmp_path, damage):
    filled(tmp_path).put("large", 1, arrays={"v": np.arange(1000.0)})
    assert Store(tmp_path).get("large").arrays["v"].tolist() == list(range(1000))
    for file in (tmp_path / "arrays").iterdir():
        file.write_bytes(damage)
    assert Store(tmp_path).get("large") is None
    assert Store(tmp_path).get("b", "two").value == "ü"


@pytest.mark.parametrize("torn", ['{"key": "c", "val', "{", "null", "[]", '{"fingerprint": 3}'])
def test_a_torn_last_line_is_dropped_and_the_store_goes_on(tmp_path, torn):
    filled(tmp_path)
    path = tmp_path / "records.jsonl"
    whole = path.read_text()
    path.write_text(whole + torn)
    again = Store(tmp_path)
    assert list(again) == ["a", "b"]
    assert path.read_text() == whole
    again.put("c", 3)
    assert list(Store(tmp_path)) == ["a", "b", "c"]


def test_damage_elsewhere_is_named(tmp_path):
    filled(tmp_path)
    path = tmp_path / "records.jsonl"
    path.write_text("{\n" + path.read_text())
    with pytest.raises(ValueError, match="line 1 damaged"):
        Store(tmp_path)


def test_what_is_dropped_is_gone(tmp_path):
    filled(tmp_path).drop({"a"})
    assert list(Store(tmp_path)) == ["b"]


WRITER = """
import sys
from pathlib import Path
import numpy as np
from theodolite.io.store import Store

store = Store(Path(sys.argv[1]))
for place in range(100_000):
    store.put(str(place), ["word"] * 50, arrays={"v": np.full(4, float(place))})
"""


def test_a_killed_writer_leaves_only_whole_records(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
    path, deadline = tmp_path / "records.jsonl", time.monotonic() + 120
    while not path.exists() or path.stat().st_size < 5_000:
        assert process.poll() is None, "the writer ended before it could be killed"
        assert time.monotonic() < deadline, "nothing was written in two minutes"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    lines = path.read_text().count("\n")
    store = Store(tmp_path)
    keys = list(store)
    assert keys == [str(place) for place in range(lines)]
    for key in keys:
        found = store.get(key)
        assert found.value == ["word"] * 50
        assert found.arrays["v"].tolist() == [float(key)] * 4


def test_two_processes_do_not_write_into_one_folder(tmp_path):
    import subprocess
    import sys

    code = "import sys; from pathlib import Path; from theodolite.io.store import Store; Store(Path(sys.argv[1]))"
    held = filled(tmp_path / "out")
    again = Store(tmp_path / "out")  # the same process may
    other = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert other.returncode == 1
    assert "expected an unused folder for this run" in other.stderr
    del held, again
    free = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True, check=False)
    assert free.returncode == 0


def test_what_may_be_written_soon_is_there_after_a_flush(tmp_path):
    store = Store(tmp_path)
    store.put("a", 1, soon=True)
    store.put("b", 2, soon=True, arrays={"v": np.array([0.1, 1 / 3])})
    store.flush()
    del store
    assert Store(tmp_path).get("b").arrays["v"].tolist() == [0.1, 1 / 3]
    assert list(Store(tmp_path)) == ["a", "b"]


def test_what_an_interrupt_meets_at_the_disk_is_written_once(tmp_path, monkeypatch):
    """A file that held every record twice was written anew at the next start."""

    def interrupted(number):
        raise KeyboardInterrupt

    store = Store(tmp_path)
    store.put("a", 1, soon=True)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.flush()
    store.flush()
    assert [json.loads(line)["key"] for line in (tmp_path / "records.jsonl").read_text().splitlines()] == ["a"]
