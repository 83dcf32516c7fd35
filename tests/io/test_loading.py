"""Models, data and subjects as people name them on a command line."""

import pytest
import torch
from safetensors.torch import save_file

from theodolite.core.subject import Subject
from theodolite.io import loading as load
from theodolite.io.datasets import dataset, default_loss

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
