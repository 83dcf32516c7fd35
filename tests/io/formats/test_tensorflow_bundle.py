"""Checkpoints that TensorFlow wrote."""

from pathlib import Path

import numpy as np
import pytest
import torch

from theodolite.io.checkpoints import checkpoint
from theodolite.io.weights import left_out

FILES = Path(__file__).parents[1] / "files"


@pytest.mark.parametrize("name", ["tensorflow", "tensorflow/model.ckpt", "tensorflow/model.ckpt.index"])
def test_a_checkpoint_of_tensorflow(name):
    expected = np.load(FILES / "tensorflow" / "expected.npz")
    found = checkpoint(FILES / name)
    assert np.array_equal(found["dense/kernel"].read().numpy(), expected["kernel"])
    assert np.array_equal(found["dense/bias"].read().numpy(), expected["bias"])
    assert torch.equal(found["dense/half"].read(), torch.from_numpy(expected["kernel"]).bfloat16())
    with pytest.raises(ValueError, match="^expected numbers in dense/names"):
        found["dense/names"].read()
    (names,) = left_out(found).values()
    assert "optimizer/momentum" in names


def test_a_tensorflow_index_without_its_data_says_so(tmp_path):
    (tmp_path / "m.index").write_bytes((FILES / "tensorflow" / "model.ckpt.index").read_bytes())
    with pytest.raises(ValueError, match=r"m\.data-00000-of-00001"):
        checkpoint(tmp_path / "m")
