"""HDF5 of its own library."""

import zipfile

import pytest
import torch

from theodolite.io.checkpoints import checkpoint

GENERATOR = torch.Generator().manual_seed(0)
TENSORS = {
    "a.weight": torch.randn(24, 64, generator=GENERATOR),
    "a.bias": torch.randn(24, generator=GENERATOR),
    "b.weight": torch.randn(32, 32, generator=GENERATOR),
}


def same(weights, *, tensors=TENSORS, prefix=""):
    found = {name: weight.read() for name, weight in weights.items()}
    assert set(found) == {prefix + name for name in tensors}
    for name, tensor in tensors.items():
        assert weights[prefix + name].shape == tuple(tensor.shape)
        assert torch.equal(found[prefix + name].float(), tensor.float())


def test_hdf5_of_its_own_library(tmp_path):
    import h5py

    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        for name, tensor in TENSORS.items():
            file[name.replace(".", "/")] = tensor.numpy()
        file["words"] = "a word"
    found = checkpoint(tmp_path / "model.weights.h5")
    same({name: weight for name, weight in found.items() if name != "words"})
    with pytest.raises(ValueError, match="^expected numbers in words"):
        found["words"].read()
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", "{}")
        archive.write(tmp_path / "model.weights.h5", "model.weights.h5")
    same({name: weight for name, weight in checkpoint(tmp_path / "model.keras").items() if name != "words"})
