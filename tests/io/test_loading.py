"""Models, data and subjects as people name them on a command line."""

import pytest
import torch
from safetensors.torch import save_file

from theodolite.core.subject import Subject
from theodolite.io import loading as load
from theodolite.io.datasets import dataset, default_loss
from theodolite.io.weights import counterparts, weights_of

TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.ones(2, dtype=torch.bfloat16)}


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
    data = dataset("digits")
    assert load.target("zoo_for_test:model", data=data, loss=default_loss(data)).has("loss")
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
        load.target(str(tmp_path / "m.safetensors"), data=dataset("digits"))


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


@pytest.mark.parametrize("prefix", ["bert.", "module.bert.", "transformer."])
def test_a_part_that_most_names_share_is_a_prefix_only_where_more_is_found_so(prefix):
    """Three quarters of an encoder's own names begin with the same word, too."""
    names = ["embeddings.weight", "pooler.weight", *(f"encoder.{k}.weight" for k in range(6))]
    alone = {name: torch.full((2, 3), float(k)) for k, name in enumerate(names)}
    inside = {prefix + name: value for name, value in alone.items()} | {"cls.weight": torch.zeros(2, 3)}
    for mine, other in ((alone, inside), (inside, alone)):
        found = counterparts(weights_of(mine), weights_of(other))
        assert len(found) == len(names)
        assert all(torch.equal(weight.read(), mine[name]) for name, weight in found.items())


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
    assert first.startswith("not compared") and first.endswith("of 1 tensor")
    assert names[first] == ("head.weight",)
    assert "head.weight" not in subject.origin and len(subject.origin) == 3


def test_names_that_stand_for_several_are_not_matched(tmp_path):
    save_file(_state(), tmp_path / "a.safetensors")
    save_file({**_state("module."), **_state("model.")}, tmp_path / "b.safetensors")
    with pytest.raises(ValueError, match="^expected a checkpoint with tensors of the same names"):
        load.asked_subject(str(tmp_path / "a.safetensors"), against=str(tmp_path / "b.safetensors"))
