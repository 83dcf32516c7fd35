"""compressed-tensors: the weights that the library makes of its files."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

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


@pytest.mark.parametrize("kind", ["float4", "int4", "int4-zeros"])
def test_compressed(kind):
    check(f"compressed-{kind}", 2**-8 if kind == "float4" else 1e-6)  # the library's float4 is bfloat16
