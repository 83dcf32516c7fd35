"""Every code block of README and docs can be pasted: Python runs in order, one folder a page, and so does every command."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from theodolite.cli import main

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)( \w+)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
KINDS = {"python", "console", "text"}
SLOW = {"check": "what `theodolite check` does with every law is what the catalogue's own tests do"}
FASTER = {"survey": ["--budget", "5s"], "diagnose": ["--budget", "5s"]}


def sections():
    """The pages whose blocks run together: README, each section of the guide, each page for who comes from elsewhere."""
    yield "README", (ROOT / "README.md").read_text(encoding="utf-8")
    for part in re.split(r"(?m)^## ", (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")):
        yield f"guide: {part.partition(chr(10))[0]}", part
    for file in sorted((ROOT / "docs" / "from").glob("*.md")):
        yield f"from {file.stem}", file.read_text(encoding="utf-8")


def blocks(text, kind):
    """The blocks of a kind; those of other tools, which are not installed here, are marked `peer` and are only read."""
    return [code for word, mark, code in BLOCK.findall(text) if word == kind and mark.strip() != "peer"]


PYTHON = {name: found for name, text in sections() if (found := blocks(text, "python"))}
COMMANDS = sorted(
    {
        line.removeprefix("$ ").partition("#")[0].strip()
        for _, text in sections()
        for code in blocks(text, "console")
        for line in code.splitlines()
        if line.startswith("$ ")
    }
)


@pytest.mark.filterwarnings("ignore")  # other people's; ours are errors in every other test
@pytest.mark.parametrize("name", PYTHON)
def test_python_runs_as_it_stands(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in PYTHON[name]:
            exec(compile(code, name, "exec"), names)


def made(folder):
    """The files that commands name: checkpoints, a folder of shards, a module and data."""
    weights = {"0.weight": torch.randn(48, 64), "0.bias": torch.zeros(48), "2.weight": torch.randn(10, 48) / 7}
    for place in (
        "model.safetensors",
        "folder/model.safetensors",
        "fine-tuned/model.safetensors",
        "base/model.safetensors",
    ):
        (folder / place).parent.mkdir(exist_ok=True)
        save_file({key: value + (0.1 if place[:4] == "fine" else 0) for key, value in weights.items()}, folder / place)
    (folder / "Llama-3.1-8B").mkdir()
    save_file(weights, folder / "Llama-3.1-8B" / "model.safetensors")
    (folder / "merged").mkdir()
    save_file({**weights, "0.weight": weights["0.weight"] + 0.1}, folder / "merged" / "model.safetensors")
    (folder / "adapter").mkdir()
    factors = {"lora_A.weight": torch.randn(2, 64), "lora_B.weight": torch.randn(48, 2)}
    save_file(
        {f"base_model.model.0.{name}": factor for name, factor in factors.items()},
        folder / "adapter" / "adapter_model.safetensors",
    )
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["0"]}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(config))
    np.savez(
        folder / "test.npz", x=np.random.default_rng(0).normal(size=(64, 8)).astype("float32"), y=np.arange(64) % 3
    )
    (folder / "mypackage").mkdir()
    code = "from torch import nn\n\n\ndef model():\n    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))\n"
    (folder / "mypackage" / "zoo.py").write_text(code)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_as_it_stands(command, tmp_path, monkeypatch, capsys):
    words = shlex.split(command)
    if words[0] == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert words[1] in targets
        return
    assert words.pop(0) == "theodolite"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    made(tmp_path)
    if words[0] in SLOW:  # one law in place of all; its options stay
        words = ["check", "marchenko-pastur", *[w for w in words if w.startswith("--")]]
        words = [w for w in words if w not in ("--size", "--jobs", "--out")]
    status = main([*words, *FASTER.get(words[0], [])])
    told = capsys.readouterr()
    assert status == 0, told.err
    assert told.out.strip()


def test_every_block_is_of_a_kind_that_is_known():
    for name, text in sections():
        for word, mark, _ in BLOCK.findall(text):
            assert word in KINDS, f"{name}: a block of {word}"
            assert mark.strip() in ("", "peer"), f"{name}: {mark}"
    assert len(PYTHON) >= 15
    assert len(COMMANDS) >= 12
