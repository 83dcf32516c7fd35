import json

import numpy as np
import pytest

from theodolite.io.notebook import Notebook


def never():
    pytest.fail("computed again")


def test_arrays_and_records_are_computed_once_and_kept_on_disk(tmp_path):
    first = Notebook(tmp_path)
    first.array("a", lambda: np.arange(3.0), durable=True)
    first.record("r", lambda: {"x": (1, 2)}, durable=True)
    assert first.array("a", never).tolist() == [0, 1, 2]
    again = Notebook(tmp_path)
    assert again.knows("r")
    assert again.array("a", never, durable=True).tolist() == [0, 1, 2]
    assert again.record("r", never, durable=True) == {"x": [1, 2]}


def test_what_is_not_durable_stays_in_memory(tmp_path):
    Notebook(tmp_path).array("a", lambda: np.zeros(2))
    assert not list(tmp_path.rglob("*"))
    assert not Notebook(tmp_path).knows("a")


def test_damage_is_computed_again(tmp_path):
    Notebook(tmp_path).array("a", lambda: np.ones(4), durable=True)
    Notebook(tmp_path).record("r", lambda: 1, durable=True)
    for file in tmp_path.rglob("*.*"):
        file.write_bytes(b"x")
    assert Notebook(tmp_path).array("a", lambda: np.zeros(1), durable=True).tolist() == [0]
    assert Notebook(tmp_path).record("r", lambda: 2, durable=True) == 2


def test_notes_are_lines_as_they_come(tmp_path):
    notes = Notebook(tmp_path)
    notes.note({"a": float("inf")})
    notes.note({"b": "ü"})
    lines = (tmp_path / "notes.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"a": None}, {"b": "ü"}]
    Notebook().note({"forgotten": 1})
