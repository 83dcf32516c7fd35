"""Members of a zip are where they say, and bombs are refused."""

import zipfile

import pytest

from theodolite.io.formats._zips import content, members, start_of


def test_a_stored_member_lies_at_its_start(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("one/data", b"12345")
        file.writestr("two", b"abc")
    found = members(path)
    raw = path.read_bytes()
    for name, expected in (("one/data", b"12345"), ("two", b"abc")):
        start = start_of(path, found[name])
        assert raw[start : start + len(expected)] == expected == content(path, name, 10)
    with pytest.raises(ValueError, match="of 5 bytes, of 4 at most"):
        content(path, "one/data", 4)


def test_a_bomb_is_known_by_its_sizes(tmp_path, monkeypatch):
    monkeypatch.setattr("theodolite.io.formats._zips.LARGEST_UNPACKED", 1000)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(1_000_000))
    with pytest.raises(ValueError, match="that unpack to 1,000,000"):
        members(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a", b"1")
        file.writestr("a", b"2")
    with pytest.raises(ValueError, match="twice"):
        members(path)
