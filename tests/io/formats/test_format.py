"""Every format written by the library that owns it: the same numbers as the safetensors of the same model, by content alone."""

import argparse

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import theodolite as th
from theodolite.io.checkpoints import checkpoint

GENERATOR = torch.Generator().manual_seed(0)
TENSORS = {
    "a.weight": torch.randn(24, 64, generator=GENERATOR),
    "a.bias": torch.randn(24, generator=GENERATOR),
    "b.weight": torch.randn(32, 32, generator=GENERATOR),
}


def same(weights, *, tensors=TENSORS, prefix=""):
    found = {name: weight.read() for name, weight in weights.items()}
    assert set(found) == {prefix + name for name in tensors}
    for name, tensor in tensors.items():
        assert weights[prefix + name].shape == tuple(tensor.shape)
        assert torch.equal(found[prefix + name].float(), tensor.float())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 24), nn.Linear(32, 32, bias=False)
        self.load_state_dict(TENSORS)

    def forward(self, x):
        return self.a(x).relu()


class Config:
    def __init__(self):
        self.lr = 0.1


def wrapped(path):
    torch.save(
        {"state_dict": TENSORS, "args": argparse.Namespace(lr=0.1), "config": Config(), "n": np.float64(3)}, path
    )


def module(path):
    torch.save(Net(), path)


def arrays(path, save):
    with path.open("wb") as file:
        save(file, **{name: tensor.numpy() for name, tensor in TENSORS.items()})


WRITERS = {
    "safetensors": lambda path: save_file(TENSORS, path),
    "torch": lambda path: torch.save(TENSORS, path),
    "old torch": lambda path: torch.save(TENSORS, path, _use_new_zipfile_serialization=False),
    "wrapped": wrapped,
    "module": module,
    "npz": lambda path: arrays(path, np.savez),
    "npz packed": lambda path: arrays(path, np.savez_compressed),
}


@pytest.mark.parametrize("suffix", ["", ".best", ".pth.tar", ".weights"])
@pytest.mark.parametrize("kind", WRITERS)
def test_known_by_content_whatever_the_name(kind, suffix, tmp_path):
    WRITERS[kind](tmp_path / f"model{suffix}")
    same(checkpoint(tmp_path / f"model{suffix}"))


def test_a_survey_says_the_same_of_every_format(tmp_path):
    rows = {}
    for kind, write in WRITERS.items():
        write(tmp_path / kind)
        rows[kind] = sorted(str(row) for row in th.survey(tmp_path / kind, cost="free").rows())
    assert all(found == rows["safetensors"] for found in rows.values())


def _trained_with_an_untrained_head(reverse):
    generator = torch.Generator().manual_seed(0)
    state = {f"layer{k}.weight": torch.randn(32, 32, generator=generator) * 0.3 for k in range(4)}
    state["a_head.weight"] = (torch.rand(10, 32, generator=generator) * 2 - 1) / 32**0.5
    return dict(sorted(state.items(), reverse=reverse))


def test_the_same_weights_are_judged_alike_in_every_format_and_order_of_keys(tmp_path):
    said = set()
    for reverse in (False, True):
        state = _trained_with_an_untrained_head(reverse)
        save_file(state, tmp_path / "m.safetensors")
        torch.save(state, tmp_path / "m.pt")
        np.savez(tmp_path / "m.npz", **{name: tensor.numpy() for name, tensor in state.items()})
        for name in ("m.safetensors", "m.pt", "m.npz"):
            result = th.survey(str(tmp_path / name))
            rows = sorted((r.quantity, r.where, r.measured, r.stderr, r.status, r.meaning) for r in result.readings)
            said.add((repr(rows), repr([(f.name, f.severity, f.where, f.says) for f in result.diagnosis.findings])))
    assert len(said) == 1
