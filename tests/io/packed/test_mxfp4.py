"""MXFP4 as transformers unpacks it."""

import torch
from safetensors.torch import save_file

from theodolite.io.checkpoints import checkpoint


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
