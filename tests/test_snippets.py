"""Every code block of README and docs can be pasted: Python runs in order, one folder a page, and so does every command."""

import contextlib
import io
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from theodolite import catalogue
from theodolite.arguments import parser
from theodolite.cli import _RUNS, main

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
from generator.front import FIRST  # noqa: E402  the commands of the site's front page

BLOCK = re.compile(r"^```(\w*)( \w+)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
KINDS = {"python", "console", "text", "toml"}
SLOW = {"check": "what `theodolite check` does with every law is what the catalogue's own tests do"}
FASTER = {"survey": ["--budget", "5s"], "diagnose": ["--budget", "5s"]}


def sections():
    """The pages whose blocks run together: README, laws, each section of the guide, each page for who comes from elsewhere."""
    yield "README", (ROOT / "README.md").read_text(encoding="utf-8")
    yield "laws", (ROOT / "docs" / "laws.md").read_text(encoding="utf-8")
    for part in re.split(r"(?m)^## ", (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")):
        yield f"guide: {part.partition(chr(10))[0]}", part
    for file in sorted((ROOT / "docs" / "from").glob("*.md")):
        yield f"from {file.stem}", file.read_text(encoding="utf-8")


def blocks(text, kind):
    """The blocks of a kind; those of other tools, which are not installed here, are marked `peer` and are only read."""
    return [code for word, mark, code in BLOCK.findall(text) if word == kind and mark.strip() != "peer"]


PYTHON = {name: found for name, text in sections() if (found := blocks(text, "python"))}
SHOWN = {  # each command with the lines that a page shows below it
    command.partition("#")[0].strip(): shown.splitlines()
    for _, text in sections()
    for code in blocks(text, "console")
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, flags=re.MULTILINE)
}
COMMANDS = sorted({*SHOWN, *(line for line in FIRST.splitlines() if line.startswith("theodolite "))})
NUMBER = re.compile(r"[−-]?∞|[−-]?\d[\d.,]*(?:e[+-]?\d+)?(?:×10[⁻⁰¹²³⁴-⁹]+)?")
FIRM = ("✖", "▲ Warn", "▲ warn", "✓", "○ note", "fix:")
"""How lines of a diagnosis begin that do not depend on the time it had."""


def blind(text):
    """The text with every number and every blank alike: what a page shows may be of another machine."""
    return " ".join(NUMBER.sub("#", text).split())


def missing(shown, printed):
    """The lines of a page that a command or a script does not print; of a diagnosis those that every run has."""
    lines = [line.strip() for line in shown if line.strip() not in ("", "...")]
    if lines and lines[0].startswith(FIRM):
        lines = [line for line in lines if line.startswith(FIRM) and "─" not in line]
    return [line for line in lines if blind(line) not in blind(printed)]


@pytest.mark.filterwarnings("ignore")  # other people's; ours are errors in every other test
@pytest.mark.parametrize("name", PYTHON)
def test_python_runs_as_it_stands_and_prints_what_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, text = {"__name__": "__main__"}, dict(sections())[name]
    printed, end = "", 0
    for found in BLOCK.finditer(text):
        word, mark, code = found.groups()
        if word == "python" and mark is None:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(code, name, "exec"), names)
            printed, end = out.getvalue(), found.end()
        elif word == "text" and printed and not text[end : found.start()].strip():  # right below the code
            assert missing(code.splitlines(), printed) == []


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
    rows = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
    for name in ("test.npz", "train.npz", "x.npz"):
        np.savez(folder / name, x=rows, y=np.arange(64) % 3)
    (folder / "train.py").write_text(TRAINING)
    (folder / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "train.py", folder / "examples")
    (folder / "mypackage").mkdir()
    code = "from torch import nn\n\n\ndef model():\n    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))\n"
    for place in ("mypackage/zoo.py", "zoo.py"):
        (folder / place).write_text(code)


TRAINING = """import torch
from mypackage.zoo import model
net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(torch.randn(32, 8)), torch.arange(32) % 3).backward()
    optimizer.step()
print("done")
"""


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
    if words[0] not in SLOW:
        assert missing(SHOWN.get(command, ()), told.out + told.err * (words[0] == "run")) == []


def test_the_page_shows_how_many_laws_of_a_topic_there_are():
    shown = next(lines for command, lines in SHOWN.items() if command == "theodolite check propagation")
    count = len(catalogue.law_names(["propagation"]))
    assert shown[0] == f"{count} of {count} laws hold"


def test_commands_within_sentences_can_be_typed():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {code for page in pages for code in re.findall(r"`theodolite ([^`\n]+)`", page.read_text(encoding="utf-8"))}
    typed = {code for code in found if "--help" not in code and code != "design --samples"}
    assert len(typed) > 15
    for code in typed:
        words = shlex.split(code)
        if words[0] in ("explain", "dimension", "memorize") and len(words) == 1:
            continue  # the command by its name alone
        parser(_RUNS).parse_args(words)
        if words[0] in ("explain", "check"):
            names = [word for word in words[1:] if not word.startswith("--") and word not in ("NAME", "D", "atlas")]
            assert all(name in catalogue.topics() or catalogue.entry(name) for name in names)


def test_every_block_is_of_a_kind_that_is_known():
    for name, text in sections():
        for word, mark, _ in BLOCK.findall(text):
            assert word in KINDS, f"{name}: a block of {word}"
            assert mark.strip() in ("", "peer"), f"{name}: {mark}"
    assert len(PYTHON) >= 15
    assert len(COMMANDS) >= 12
