"""Quantized files of the libraries that own the schemes (tests/io/files): the weights that those libraries make of them."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import theodolite as th
from theodolite.io.checkpoints import checkpoint

FILES = Path(__file__).parent / "files"
FOLDERS = sorted(path.parent.name for path in FILES.glob("*/expected.safetensors"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_quantized_weight_is_the_one_its_library_makes_of_it(folder):
    expected = load_file(FILES / folder / "expected.safetensors")["a.weight"]
    found = checkpoint(FILES / folder / "model.safetensors")
    assert list(found) == ["a.weight"]
    assert found["a.weight"].shape == tuple(expected.shape)
    assert found["a.weight"].note.startswith("dequantized from ")
    read = found["a.weight"].read()
    assert read.dtype == torch.float32
    # auto-gptq keeps its scales in half precision beside weights that were rounded before; the library's float4 is bfloat16
    error = {"gptq": 2e-3, "compressed-float": 2**-8}.get(folder.rstrip("248"), 1e-6)
    assert torch.allclose(read, expected, rtol=error, atol=1e-8)


def test_there_are_files_of_every_scheme():
    kinds = {name.split("-")[0].rstrip("248") for name in FOLDERS}
    assert kinds == {"gptq", "awq", "bitsandbytes", "compressed"}


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


def test_mxfp4_experts_as_transformers_unpacks_them(tmp_path):
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    generator = torch.Generator().manual_seed(2)
    blocks = torch.randint(0, 256, (3, 8, 2, 16), dtype=torch.uint8, generator=generator)
    scales = torch.randint(120, 130, (3, 8, 2), dtype=torch.uint8, generator=generator)
    tensors = {"mlp.experts.gate_up_proj_blocks": blocks, "mlp.experts.gate_up_proj_scales": scales}
    save_file(tensors, tmp_path / "m.safetensors")
    found = checkpoint(tmp_path / "m.safetensors")["mlp.experts.gate_up_proj"]
    expected = convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32)
    assert found.shape == tuple(expected.shape)
    assert torch.equal(found.read(), expected)


def test_the_survey_of_a_quantized_file_is_that_of_its_weights(tmp_path):
    quantized = th.survey(FILES / "bitsandbytes-nf4" / "model.safetensors", cost="free")
    plain = th.survey(FILES / "bitsandbytes-nf4" / "expected.safetensors", cost="free")
    rows = [
        [{k: v for k, v in row.items() if k != "meaning"} for row in result.rows()] for result in (quantized, plain)
    ]
    assert rows[0] == rows[1]
    assert any("equantized from bitsandbytes nf4" in row["meaning"] for row in quantized.rows())


def test_tensors_of_an_unknown_scheme_stay_and_are_named(tmp_path):
    tensors = {"a.qweight": torch.ones(8, 9, dtype=torch.int32), "a.scales": torch.ones(2, 5), "a.weight": weight(9, 8)}
    save_file(tensors, tmp_path / "m.safetensors")
    assert sorted(checkpoint(tmp_path / "m.safetensors")) == ["a.qweight", "a.scales", "a.weight"]
    meanings = {row["where"]: row["meaning"] for row in th.survey(tmp_path / "m.safetensors", cost="free").rows()}
    assert "packed weights; unpack them first" in meanings["a.qweight"]


def test_groups_without_a_scale_are_an_error_in_words(tmp_path):
    tensors = load_file(FILES / "gptq4" / "model.safetensors")
    tensors["a.g_idx"] = torch.full((64,), 7, dtype=torch.int32)
    save_file(tensors, tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="^expected groups of inputs that have a scale"):
        checkpoint(tmp_path / "m.safetensors")["a.weight"].read()
