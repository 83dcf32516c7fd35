"""Tensors of a checkpoint as weights: tied ones once, what is left out by name."""

import pytest
import torch

from theodolite.io.checkpoints import checkpoint
from theodolite.io.weights import left_out

GENERATOR = torch.Generator().manual_seed(0)


@pytest.mark.filterwarnings("ignore")
def test_tied_weights_are_surveyed_once(tmp_path):
    whole = torch.randn(20, 16, generator=GENERATOR)
    torch.save({"embed.weight": whole, "head.weight": whole, "other": whole.clone()}, tmp_path / "m.pt")
    found = checkpoint(tmp_path / "m.pt")
    assert list(found) == ["embed.weight", "other"]
    assert left_out(found) == {"tied to embed.weight: the same numbers": ("head.weight",)}
