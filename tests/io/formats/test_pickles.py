"""Pickles are read, never run."""

import pickle

import numpy as np
import pytest
import torch

from theodolite.io.checkpoints import checkpoint

GENERATOR = torch.Generator().manual_seed(0)
TENSORS = {
    "a.weight": torch.randn(24, 64, generator=GENERATOR),
    "a.bias": torch.randn(24, generator=GENERATOR),
    "b.weight": torch.randn(32, 32, generator=GENERATOR),
}


def arrays(path, save):
    with path.open("wb") as file:
        save(file, **{name: tensor.numpy() for name, tensor in TENSORS.items()})


def test_arrays_inside_pickles(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))}
    torch.save(arrays, tmp_path / "m.pt")
    found = checkpoint(tmp_path / "m.pt")
    assert all(np.array_equal(found[name].read().numpy(), arrays[name]) for name in arrays)


def test_a_trap_in_a_pickle_does_not_spring(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"model": {"a": torch.ones(2, 2)}, "trap": Trap(), "more": [Trap()]}, tmp_path / "m.pt")
    assert list(checkpoint(tmp_path / "m.pt")) == ["a"]
    assert not (tmp_path / "ran").exists()


def test_a_bare_pickle_is_named_as_such(tmp_path):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="torch did not write"):
        checkpoint(tmp_path / "m.pkl")
