"""An adapter's rank, planted and read."""

import torch
from safetensors.torch import save_file

import theodolite as th


def noise(*shape, seed=0, scale=0.05):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def by_quantity(readings, quantity):
    return {reading.where: reading for reading in readings if quantity in reading.quantity}


def test_an_adapter_shows_its_rank(tmp_path):
    base = noise(80, 60)
    adapter = noise(80, 4, seed=3, scale=0.1) @ noise(4, 60, seed=4, scale=0.1)
    save_file({"a.weight": base, "b.weight": base.clone()}, tmp_path / "base.safetensors")
    save_file({"a.weight": base + adapter, "b.weight": base.clone()}, tmp_path / "tuned.safetensors")
    from theodolite.io.checkpoints import checkpoint

    readings = th.read(
        "training-change", tmp_path / "tuned.safetensors", origin=checkpoint(tmp_path / "base.safetensors")
    )
    assert by_quantity(readings, "rank of the change")["a.weight"].measured == 4
    assert by_quantity(readings, "size of the change")["b.weight"].measured == 0
    assert by_quantity(readings, "spikes in the change")["a.weight"].measured >= 1
