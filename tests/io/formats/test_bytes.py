"""A cursor reads numbers, and never past the end."""

import pytest

from theodolite.io.formats._bytes import Cursor


@pytest.fixture
def cursor(tmp_path):
    (tmp_path / "f").write_bytes(bytes(range(1, 11)))
    with Cursor(str(tmp_path / "f")) as made:
        yield made


def test_numbers_of_both_orders_and_signs(cursor):
    assert cursor.number(2) == 0x0201 and cursor.number(2, order="big") == 0x0304
    assert cursor.skip(2) == 4 and cursor.take(2) == b"\7\10"
    cursor.move(0)
    assert cursor.take(10) == bytes(range(1, 11))


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32, 2**63 - 1])
def test_groups_of_seven_bits(value, tmp_path):
    rest, raw = value, b""
    while True:
        rest, group = rest >> 7, rest & 127
        raw += bytes([group | (128 if rest else 0)])
        if not rest:
            break
    (tmp_path / "f").write_bytes(raw)
    with Cursor(str(tmp_path / "f")) as cursor:
        assert cursor.varint() == value


def test_what_leads_out_of_the_file_is_refused_before_anything_is_read(cursor, tmp_path):
    for wrong in (
        lambda: cursor.take(11),
        lambda: cursor.take(-1),
        lambda: cursor.take(3, most=2),
        lambda: cursor.move(11),
    ):
        with pytest.raises(ValueError, match="byte"):
            wrong()
    assert cursor.place == 0
    (tmp_path / "g").write_bytes(b"\xff" * 12)
    with Cursor(str(tmp_path / "g")) as endless, pytest.raises(ValueError, match="ten bytes"):
        endless.varint()
