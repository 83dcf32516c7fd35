"""Checkpoints and data as people have them on disk."""

import json
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from theodolite.core.subject import Subject
from theodolite.io import loading as load
from theodolite.io.weights import readable

TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.ones(2, dtype=torch.bfloat16)}


def same(weights):
    assert {name: weight.shape for name, weight in weights.items()} == {"a.weight": (2, 3), "a.bias": (2,)}
    for name, weight in weights.items():
        assert torch.equal(weight.read().to(torch.float32), TENSORS[name].to(torch.float32))


def test_safetensors(tmp_path):
    save_file(TENSORS, tmp_path / "m.safetensors")
    weights = load.checkpoint(tmp_path / "m.safetensors")
    same(weights)
    assert weights["a.bias"].dtype == torch.bfloat16


def sharded(folder):
    save_file({"a.weight": TENSORS["a.weight"]}, folder / "model-00001-of-00002.safetensors")
    save_file({"a.bias": TENSORS["a.bias"]}, folder / "model-00002-of-00002.safetensors")
    where = {"a.weight": "model-00001-of-00002.safetensors", "a.bias": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    return folder


def test_a_folder_of_shards(tmp_path):
    same(load.checkpoint(sharded(tmp_path)))
    (tmp_path / "model.safetensors.index.json").unlink()
    same(load.checkpoint(tmp_path))


@pytest.mark.parametrize(
    "wrap", [dict, lambda d: {"state_dict": d, "epoch": 3}, lambda d: {"model": {"state_dict": d}}]
)
@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt"])
def test_state_dicts(tmp_path, wrap, suffix):
    torch.save(wrap(TENSORS), tmp_path / f"m{suffix}")
    same(load.checkpoint(tmp_path / f"m{suffix}"))


def test_old_torch_files(tmp_path):
    torch.save(TENSORS, tmp_path / "m.pt", _use_new_zipfile_serialization=False)
    same(load.checkpoint(tmp_path / "m.pt"))


def test_npz(tmp_path):
    np.savez(tmp_path / "m.npz", **{name: tensor.float().numpy() for name, tensor in TENSORS.items()})
    same(load.checkpoint(tmp_path / "m.npz"))


def test_one_tensor_is_read_at_a_time(tmp_path, monkeypatch):
    from theodolite.io.formats import _format

    read, real = [], _format.read_into

    def watched(flat, path, offset):
        read.append(flat.numel() * flat.element_size())
        real(flat, path, offset)

    monkeypatch.setattr(_format, "read_into", watched)
    for save, name in ((save_file, "m.safetensors"), (torch.save, "m.pt")):
        save(TENSORS, tmp_path / name)
        weights = load.checkpoint(tmp_path / name)
        assert read == []
        weights["a.bias"].read()
        assert read == [4]
        read.clear()


def truncated(folder):
    save_file(TENSORS, folder / "m.safetensors")
    whole = (folder / "m.safetensors").read_bytes()
    (folder / "m.safetensors").write_bytes(whole[:-7])
    return folder / "m.safetensors"


def garbage(folder):
    (folder / "m.safetensors").write_bytes(b"not a checkpoint at all, only words")
    return folder / "m.safetensors"


def raw_pickle(folder):
    (folder / "m.pt").write_bytes(pickle.dumps({"a": print}))
    return folder / "m.pt"


def truncated_torch(folder):
    torch.save(TENSORS, folder / "m.pt")
    (folder / "m.pt").write_bytes((folder / "m.pt").read_bytes()[:200])
    return folder / "m.pt"


def truncated_npz(folder):
    np.savez(folder / "m.npz", a=np.ones(100))
    (folder / "m.npz").write_bytes((folder / "m.npz").read_bytes()[:50])
    return folder / "m.npz"


def object_npz(folder):
    np.savez(folder / "m.npz", a=np.array([print], dtype=object))
    return folder / "m.npz"


def text(folder):
    (folder / "nonsense.txt").write_text("hello")
    return folder / "nonsense.txt"


def missing_shard(folder):
    (sharded(folder) / "model-00002-of-00002.safetensors").unlink()
    return folder


def lying_index(folder):
    where = {"ghost": "model-00001-of-00002.safetensors"}
    (sharded(folder) / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return folder


def broken_index(folder):
    (sharded(folder) / "model.safetensors.index.json").write_text("{")
    return folder


def empty_folder(folder):
    return folder


def empty_dict(folder):
    torch.save({"epoch": 1}, folder / "m.pt")
    return folder / "m.pt"


def nowhere(folder):
    return folder / "nowhere.safetensors"


@pytest.mark.parametrize(
    "make",
    [
        truncated,
        garbage,
        raw_pickle,
        truncated_torch,
        truncated_npz,
        object_npz,
        text,
        broken_index,
        empty_folder,
        empty_dict,
        nowhere,
    ],
)
def test_bad_checkpoints_get_one_clear_line(make, tmp_path):
    with pytest.raises(ValueError, match="^expected .* got ") as caught:
        load.checkpoint(make(tmp_path))
    assert "\n" not in str(caught.value)


def damaged_shard(folder):
    shard = sharded(folder) / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    return folder


@pytest.mark.parametrize(
    ("make", "name", "words"),
    [
        (missing_shard, "a.bias", "no such file"),
        (damaged_shard, "a.bias", "whole safetensors"),
        (lying_index, "ghost", "no such tensor"),
    ],
)
def test_in_a_folder_what_is_missing_is_named_and_the_rest_is_read(make, name, words, tmp_path):
    weights = load.checkpoint(make(tmp_path))
    faults = {}
    found = {weight.name for weight, _ in readable(weights, faults)}
    assert words in faults[name]
    assert found == set(weights) - {name}


def test_a_damaged_shard_without_an_index_is_named(tmp_path):
    (damaged_shard(tmp_path) / "model.safetensors.index.json").unlink()
    weights = load.checkpoint(tmp_path)
    assert set(weights) == {"a.weight", "model-00002-of-00002.safetensors"}


def test_a_pickled_module_never_runs_and_the_safe_way_is_said(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"a": Trap()}, tmp_path / "m.pt")
    with pytest.raises(ValueError, match="state_dict"):
        load.checkpoint(tmp_path / "m.pt")
    assert not (tmp_path / "ran").exists()


def test_nan_checkpoint_is_named(tmp_path):
    save_file({"a.weight": torch.tensor([[1.0, float("nan")]])}, tmp_path / "m.safetensors")
    faults = {}
    assert list(readable(load.target(str(tmp_path / "m.safetensors")).weights, faults)) == []
    assert "1 of 2 values of a.weight" in faults["a.weight"]


def test_functions(tmp_path, monkeypatch):
    (tmp_path / "zoo_for_test.py").write_text(
        "import torch\nfrom torch import nn\nfrom theodolite import Subject\n"
        "def model():\n    return nn.Linear(64, 10)\n"
        "def subject():\n    return Subject(nn.Linear(64, 10), name='mine')\n"
        "def needs(width):\n    return nn.Linear(width, 10)\n"
        "def number():\n    return 3\n"
        "def fails():\n    raise RuntimeError('no weights here')\n"
        "constant = 5\n"
    )
    monkeypatch.chdir(tmp_path)
    data = load.dataset("digits")
    assert load.target("zoo_for_test:model", data=data, loss=load.default_loss(data)).has("loss")
    assert load.target("zoo_for_test:subject").name == "mine"
    for name, words in [
        ("needs", "needs width"),
        ("number", "got int"),
        ("fails", "no weights here"),
        ("constant", "got int"),
        ("absent", "called absent"),
    ]:
        with pytest.raises(ValueError, match=words):
            load.target(f"zoo_for_test:{name}")
    with pytest.raises(ValueError, match="ModuleNotFoundError"):
        load.target("no_such_module_anywhere:model")


def test_weights_cannot_be_run_on_data(tmp_path):
    save_file(TENSORS, tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="package.module:function"):
        load.target(str(tmp_path / "m.safetensors"), data=load.dataset("digits"))


def test_data(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(6, 3)), np.arange(6)
    np.savez(tmp_path / "xy.npz", x=x, y=y)
    np.savez(tmp_path / "real.npz", x=x, y=y / 2)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "other.npz", z=x)
    np.savez(tmp_path / "words.npz", x=np.array(["a", "b"]))
    pair = load.dataset(str(tmp_path / "xy.npz"))
    assert pair[0].dtype == torch.float32
    assert pair[1].dtype == torch.int64
    assert load.default_loss(pair) is nn.functional.cross_entropy
    assert load.default_loss(load.dataset(str(tmp_path / "real.npz"))) is nn.functional.mse_loss
    assert load.default_loss(load.dataset(str(tmp_path / "x.npy"))) is None
    np.save(tmp_path / "objects.npy", np.array([print], dtype=object))
    for name, words in [
        ("objects.npy", "plain array"),
        ("other.npz", "called x"),
        ("words.npz", "dtype"),
        ("x.csv", "check the path"),
    ]:
        with pytest.raises(ValueError, match=words):
            load.dataset(str(tmp_path / name))


def test_a_bare_checkpoint_is_a_subject(tmp_path):
    save_file(TENSORS, tmp_path / "m.safetensors")
    subject = load.target(str(tmp_path / "m.safetensors"))
    assert isinstance(subject, Subject)
    assert subject.has("weights")
    assert not subject.has("model")


def _state(prefix="", scale=1.0):
    generator = torch.Generator().manual_seed(0)
    return {f"{prefix}layer{k}.weight": scale * torch.randn(20, 30, generator=generator) for k in range(3)}


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "_orig_mod.module.", "bert.", "model.bert."])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_checkpoint_is_compared_with_one_whose_names_have_another_prefix(tmp_path, prefix, swapped):
    save_file(_state(), tmp_path / "a.safetensors")
    save_file(_state(prefix, 0.5), tmp_path / "b.safetensors")
    mine, other = ("b", "a") if swapped else ("a", "b")
    subject = load.asked_subject(str(tmp_path / f"{mine}.safetensors"), against=str(tmp_path / f"{other}.safetensors"))
    assert set(subject.origin) == set(subject.weights)
    for name, weight in subject.weights.items():
        assert torch.allclose(subject.origin[name].read(), weight.read() * (2.0 if swapped else 0.5))
    assert not subject.weights.left_out


@pytest.mark.parametrize("other", [{"x.weight": torch.ones(20, 30)}, {"layer0.weight": torch.ones(4, 4)}])
def test_a_checkpoint_in_which_nothing_matches_is_refused(tmp_path, other):
    save_file(_state(), tmp_path / "a.safetensors")
    save_file(other, tmp_path / "b.safetensors")
    with pytest.raises(
        ValueError, match="^expected a checkpoint with tensors of the same names and shapes for --against"
    ):
        load.asked_subject(str(tmp_path / "a.safetensors"), against=str(tmp_path / "b.safetensors"))


def test_what_has_no_counterpart_is_said_first(tmp_path):
    save_file({**_state(), "head.weight": torch.ones(5, 20)}, tmp_path / "a.safetensors")
    save_file({**_state("module."), "module.head.weight": torch.ones(7, 20)}, tmp_path / "b.safetensors")
    subject = load.asked_subject(str(tmp_path / "a.safetensors"), against=str(tmp_path / "b.safetensors"))
    (first, *_), names = list(subject.weights.left_out), subject.weights.left_out
    assert first.startswith("not compared") and "1 of the tensors" in first
    assert names[first] == ("head.weight",)
    assert "head.weight" not in subject.origin and len(subject.origin) == 3


def test_names_that_stand_for_several_are_not_matched(tmp_path):
    save_file(_state(), tmp_path / "a.safetensors")
    save_file({**_state("module."), **_state("model.")}, tmp_path / "b.safetensors")
    with pytest.raises(ValueError, match="^expected a checkpoint with tensors of the same names"):
        load.asked_subject(str(tmp_path / "a.safetensors"), against=str(tmp_path / "b.safetensors"))
