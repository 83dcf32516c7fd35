"""bitsandbytes: the weights that the library makes of its files."""

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


@pytest.mark.parametrize("kind", ["fp4-nested", "int8", "nf4", "nf4-nested"])
def test_bitsandbytes(kind):
    check(f"bitsandbytes-{kind}")
