"""GPTQ and AWQ: the weights that the libraries that own the schemes make of their files."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from theodolite.io.checkpoints import checkpoint

FILES = Path(__file__).parents[1] / "files"


def check(folder, error=1e-6):
    """The file's weight is the one that the library that wrote it makes of it."""
    expected = load_file(FILES / folder / "expected.safetensors")["a.weight"]
    found = checkpoint(FILES / folder / "model.safetensors")
    assert list(found) == ["a.weight"]
    assert found["a.weight"].shape == tuple(expected.shape)
    assert found["a.weight"].note.startswith("dequantized from ")
    read = found["a.weight"].read()
    assert read.dtype == torch.float32
    assert torch.allclose(read, expected, rtol=error, atol=1e-8)


@pytest.mark.parametrize("folder", ["gptq2", "gptq4", "gptq8", "awq4"])
def test_gptq_and_awq(folder):
    # auto-gptq keeps its scales in half precision beside weights that were rounded before
    check(folder, 2e-3 if folder.startswith("gptq") else 1e-6)


def test_groups_without_a_scale_are_an_error_in_words(tmp_path):
    tensors = load_file(FILES / "gptq4" / "model.safetensors")
    tensors["a.g_idx"] = torch.full((64,), 7, dtype=torch.int32)
    save_file(tensors, tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="^expected groups of inputs that have a scale"):
        checkpoint(tmp_path / "m.safetensors")["a.weight"].read()
