"""Data as people have them on disk."""

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.io.datasets import dataset, default_loss


def test_files_of_arrays_and_the_loss_for_them(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(6, 3)), np.arange(6)
    np.savez(tmp_path / "xy.npz", x=x, y=y)
    np.savez(tmp_path / "real.npz", x=x, y=y / 2)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "other.npz", z=x)
    np.savez(tmp_path / "words.npz", x=np.array(["a", "b"]))
    pair = dataset(str(tmp_path / "xy.npz"))
    assert pair[0].dtype == torch.float32
    assert pair[1].dtype == torch.int64
    assert default_loss(pair) is nn.functional.cross_entropy
    assert default_loss(dataset(str(tmp_path / "real.npz"))) is nn.functional.mse_loss
    assert default_loss(dataset(str(tmp_path / "x.npy"))) is None
    np.save(tmp_path / "objects.npy", np.array([print], dtype=object))
    for name, words in [
        ("objects.npy", "plain array"),
        ("other.npz", "called x"),
        ("words.npz", "dtype"),
        ("x.csv", "check the path"),
    ]:
        with pytest.raises(ValueError, match=words):
            dataset(str(tmp_path / name))
