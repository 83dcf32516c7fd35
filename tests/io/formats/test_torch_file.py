"""Files of torch.save: what a wrapper holds, scripts, views, types; nothing in them runs."""

import json

import pytest
import torch
from torch import nn

from theodolite.io.checkpoints import checkpoint
from theodolite.io.weights import left_out


def test_what_a_wrapper_holds_beside_the_weights_is_named(tmp_path):
    torch.save(
        {"state_dict": {"a": torch.ones(3, 3)}, "optimizer": {"m": torch.ones(3)}, "epoch": 1}, tmp_path / "m.pt"
    )
    (names,) = left_out(checkpoint(tmp_path / "m.pt")).values()
    assert names == ("optimizer.m",)


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


def script(path):
    torch.jit.save(torch.jit.trace(Net(), torch.zeros(2, 64), check_trace=False), path)


def with_b(path):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Net()

        def forward(self, x):
            return self.inner.b(self.inner.a(x).sum() + torch.zeros(2, 32))

    torch.jit.script(Both()).save(path)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
def test_torchscript_gives_its_tensors_and_runs_nothing(tmp_path):
    script(tmp_path / "m.pt")
    found = checkpoint(tmp_path / "m.pt")
    assert torch.equal(found["a.weight"].read(), TENSORS["a.weight"])
    with_b(str(tmp_path / "n.pt"))
    same(checkpoint(tmp_path / "n.pt"), prefix="inner.")


def test_tensors_inside_lists_are_named_by_their_place(tmp_path):
    torch.save({"layers": [TENSORS["a.weight"], {"bias": TENSORS["a.bias"]}], "step": 3}, tmp_path / "m.pt")
    assert list(checkpoint(tmp_path / "m.pt")) == ["layers.0", "layers.1.bias"]


def test_views_parameters_and_types(tmp_path):
    whole = torch.arange(24.0).reshape(4, 6)
    tensors = {
        "transposed": whole.T,
        "sliced": whole[1:3, ::2],
        "parameter": nn.Parameter(whole.clone()),
        "half": whole.half(),
        "float8": whole.to(torch.float8_e4m3fn),
        "scalar": torch.tensor(3.0),
        "empty": torch.zeros(0, 5),
        "words": torch.arange(4).to(torch.uint16),
    }
    for old in (True, False):
        torch.save(tensors, tmp_path / "m.pt", _use_new_zipfile_serialization=not old)
        found = checkpoint(tmp_path / "m.pt")
        for name, tensor in tensors.items():
            assert torch.equal(found[name].read().double(), tensor.detach().double()), name


def test_sharded_torch_folders(tmp_path):
    torch.save({"a.weight": TENSORS["a.weight"]}, tmp_path / "pytorch_model-00001-of-00002.bin")
    torch.save({k: TENSORS[k] for k in ("a.bias", "b.weight")}, tmp_path / "pytorch_model-00002-of-00002.bin")
    same(checkpoint(tmp_path))
    where = {name: f"pytorch_model-0000{1 if name == 'a.weight' else 2}-of-00002.bin" for name in TENSORS}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": where}))
    same(checkpoint(tmp_path))
