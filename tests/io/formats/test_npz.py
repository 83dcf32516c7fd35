"""Arrays of numpy: every order and type of numbers, nothing that is not numbers."""

import numpy as np
import pytest
import torch

from theodolite.io.formats.npz import format, recognizes, weights


def test_arrays_by_rows_by_columns_of_other_byte_orders_and_compressed(tmp_path):
    values = np.arange(6.0).reshape(2, 3)
    arrays = {
        "rows": values,
        "columns": np.asfortranarray(values),
        "big": values.astype(">f4"),
        "whole": values.astype("u1"),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "m.npz", **arrays)
        found = weights(tmp_path / "m.npz")
        assert list(found) == list(arrays)
        for name, weight in found.items():
            assert weight.shape == (2, 3)
            assert torch.equal(weight.read().double(), torch.from_numpy(values)), name


def test_objects_are_named_and_never_unpickled(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.array([{"x": 1}], dtype=object), b=np.ones(2))
    found = weights(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="expected numbers in a"):
        found["a"].read()
    assert found["b"].read().tolist() == [1.0, 1.0]


def test_known_by_its_members_whatever_its_name(tmp_path):
    with (tmp_path / "weights.bin").open("wb") as file:
        np.savez(file, a=np.ones(2))
    assert recognizes(b"PK", tmp_path / "weights.bin") and format.words == ".npz"
    torch.save({"a": torch.ones(2)}, tmp_path / "m.pt")
    assert not recognizes(b"PK", tmp_path / "m.pt")


def test_packed_bytes_that_do_not_unpack_are_refused_in_one_line(tmp_path):
    np.savez_compressed(tmp_path / "m.npz", a=np.random.default_rng(0).normal(size=100_000))
    data = bytearray((tmp_path / "m.npz").read_bytes())
    data[len(data) // 2] ^= 255  # far behind the header
    (tmp_path / "m.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"^expected a whole \.npz file"):
        weights(tmp_path / "m.npz")["a"].read()
