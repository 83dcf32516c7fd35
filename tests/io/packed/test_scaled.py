"""Eight bits beside their scales."""

import pytest
import torch
from safetensors.torch import save_file

from theodolite.io.checkpoints import checkpoint


def weight(rows, columns):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(1))


def scaled_by_block(matrix, size):
    """As transformers' FineGrainedFP8 has it: the scale of a block is kept as what its float8 is multiplied with."""
    rows, columns = -(-matrix.shape[0] // size), -(-matrix.shape[1] // size)
    scale = torch.zeros(rows, columns)
    packed = torch.zeros_like(matrix)
    for i in range(rows):
        for j in range(columns):
            block = (slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size))
            scale[i, j] = matrix[block].abs().max() / 448
            packed[block] = matrix[block] / scale[i, j]
    return packed.to(torch.float8_e4m3fn), scale


@pytest.mark.parametrize("kind", ["one", "rows", "blocks", "cut blocks", "int8"])
def test_eight_bits_beside_their_scales(kind, tmp_path):
    matrix = weight(150, 200)
    if kind.endswith("blocks"):
        packed, scale = scaled_by_block(matrix, 50 if kind == "blocks" else 128)
        name = "weight_scale_inv"
    elif kind == "int8":
        scale, name = matrix.abs().amax(1, keepdim=True) / 127, "weight_scale"
        packed = (matrix / scale).round().to(torch.int8)
    else:
        scale = matrix.abs().max() / 448 if kind == "one" else matrix.abs().amax(1, keepdim=True) / 448
        packed, name = (matrix / scale).to(torch.float8_e4m3fn), "weight_scale"
    tensors = {"a.weight": packed, f"a.{name}": scale, "a.input_scale": torch.tensor(1.0), "b.bias": torch.ones(3)}
    save_file(tensors, tmp_path / "m.safetensors")
    found = checkpoint(tmp_path / "m.safetensors")
    assert sorted(found) == ["a.weight", "b.bias"]
    error = (found["a.weight"].read() - matrix).abs()
    assert (error <= 0.07 * matrix.abs() + 0.01 * matrix.abs().max()).all()


def test_float8_blocks_are_multiplied_by_what_is_called_the_inverse(tmp_path):
    packed, scale = scaled_by_block(weight(256, 128), 128)
    save_file({"a.weight": packed, "a.weight_scale_inv": scale}, tmp_path / "m.safetensors")
    expected = packed.float() * scale.repeat_interleave(128, 0).repeat_interleave(128, 1)
    assert torch.equal(checkpoint(tmp_path / "m.safetensors")["a.weight"].read(), expected)
