"""The stable rank of noise, whichever way the matrix lies."""

import pytest
import torch
from safetensors.torch import save_file

import theodolite as th


@pytest.mark.parametrize("shape", [(2048, 16), (16, 2048), (64, 64)])
def test_the_stable_rank_of_noise_agrees_whichever_way_it_lies(shape, tmp_path):
    generator = torch.Generator().manual_seed(4)
    save_file({f"{k}.weight": torch.randn(*shape, generator=generator) for k in range(40)}, tmp_path / "m.safetensors")
    found = [r for r in th.read("rank", tmp_path / "m.safetensors") if r.quantity == "stable rank"]
    assert sum(reading.status != "agrees" for reading in found) <= 1
