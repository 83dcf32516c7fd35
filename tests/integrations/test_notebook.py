"""``%%theodolite``: a cell is run by the shell as it is, watched, and its page is shown. Tried with a real kernel by hand."""

import json
import sys
import types

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th


class Shell:
    """As much of IPython's shell as the magic asks for."""

    def __init__(self, names):
        self.names, self.magics = names, {}

    def register_magic_function(self, function, kind, name):
        self.magics[name] = (kind, function)

    def run_cell(self, code):
        exec(code, self.names)


CELL = """
for step in range(60):
    optimizer.zero_grad()
    loss = cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


def test_a_cell_trains_a_model_of_an_earlier_one_watched(tmp_path, monkeypatch, capsys):
    shown = []
    display = types.SimpleNamespace(FileLink=str, display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    torch.manual_seed(0)
    x = torch.randn(64, 6)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"x": x, "y": (x.sum(1) > 0).long(), "model": model, "optimizer": optimizer, "cross_entropy": cross_entropy}
    shell = Shell(given)
    th.load_ipython_extension(shell)
    kind, magic = shell.magics["theodolite"]
    assert kind == "line_cell"
    magic(f"--out {tmp_path} --no-diagnosis --level cheap", CELL)
    assert "watching Sequential with SGD, loss cross_entropy" in capsys.readouterr().err
    assert json.loads((tmp_path / "run.json").read_text())["readings"]
    assert shown == [str(tmp_path / "run.html")] and shell.names["loss"].item() < 0.6
    magic("--evry 3", CELL)
    assert "unrecognized arguments: --evry" in capsys.readouterr().err and len(shown) == 1
