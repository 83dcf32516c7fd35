"""MXFP4 as its standard has it, and as transformers unpacks it."""

import torch
from safetensors.torch import save_file

from theodolite.io.checkpoints import checkpoint

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
"""A sign, two bits of exponent and one of mantissa (Open Compute Project, Microscaling Formats 1.0)."""


def unpacked(blocks, scales):
    """Two numbers a byte, the low half first, 32 of them under one power of two."""
    halves = torch.stack([blocks & 15, blocks >> 4], -1).flatten(-2).long()
    values = torch.cat([E2M1, -E2M1])[halves] * 2.0 ** (scales.float() - 127)[..., None]
    return values.flatten(-2).transpose(1, 2)


def test_mxfp4_experts_as_the_standard_and_transformers_have_them(tmp_path):
    generator = torch.Generator().manual_seed(2)
    blocks = torch.randint(0, 256, (3, 8, 2, 16), dtype=torch.uint8, generator=generator)
    scales = torch.randint(120, 130, (3, 8, 2), dtype=torch.uint8, generator=generator)
    tensors = {"mlp.experts.gate_up_proj_blocks": blocks, "mlp.experts.gate_up_proj_scales": scales}
    save_file(tensors, tmp_path / "m.safetensors")
    found = checkpoint(tmp_path / "m.safetensors")["mlp.experts.gate_up_proj"]
    expected = unpacked(blocks, scales)
    assert found.shape == tuple(expected.shape)
    assert torch.equal(found.read(), expected)
    try:
        from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    except ImportError:  # an older one, which does not know the format
        return
    assert torch.equal(convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32), expected)
