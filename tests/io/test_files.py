import json
import os
import stat

import pytest

from theodolite.io.files import json_ready, json_text, write_atomically


def test_a_file_is_written_whole_with_ordinary_rights(tmp_path):
    path = write_atomically(tmp_path / "deep" / "a.txt", "grüße\n")
    assert path.read_text(encoding="utf-8") == "grüße\n"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 & ~mask


def test_what_cannot_be_encoded_is_written_escaped(tmp_path):
    assert write_atomically(tmp_path / "a.txt", "new \udcff").read_text(encoding="utf-8") == "new \\udcff"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write_atomically(tmp_path / "a.txt", "old")
    with pytest.raises(TypeError):
        write_atomically(path, ["no text"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_plain_json_has_no_infinities():
    assert json_ready({"a": (1.0, float("nan")), 2: {"b": None, "c": True}}) == {
        "a": [1.0, None],
        "2": {"b": None, "c": True},
    }


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        [[], {}, [[1.5, None], {"a": {}}]],
        {"readings": [{"where": 'ä\n"x"', "measured": 1e-300, "on": True}, {"b": [1, {"c": "d"}]}], "n": -0.0},
        "word",
    ],
)
def test_json_is_indented_as_by_the_library(value):
    assert json_text(value) == json.dumps(value, indent=2, ensure_ascii=False)
    with pytest.raises(ValueError, match="JSON"):
        json_text([value, float("nan")])
