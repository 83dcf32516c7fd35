"""``%%theodolite`` and ``watch.show()``: what trains in a cell is shown below it. Tried with a real kernel by hand."""

import json
import logging
import sys
import types

import pytest
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


class Output:
    """As much of IPython.display as a run that is shown asks for."""

    def __init__(self, monkeypatch):
        self.links, self.pages, self.closed = [], [], False
        module = types.SimpleNamespace(FileLink=str, HTML=lambda page: {"html": page}, display=self.display)
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(display=module))
        monkeypatch.setitem(sys.modules, "IPython.display", module)

    def display(self, shown, *, display_id=False):
        (self.pages if display_id else self.links).append(shown)
        return self if display_id else None

    def update(self, shown):
        if self.closed:
            raise RuntimeError("the notebook is closed")
        self.pages.append(shown)

    @property
    def titles(self):
        return [page["html"].split('th-title">')[1].split("<")[0] for page in self.pages]


def training(lr=0.1):
    torch.manual_seed(0)
    x = torch.randn(64, 6)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    return x, (x.sum(1) > 0).long(), model, torch.optim.SGD(model.parameters(), lr=lr)


CELL = """
for step in range(60):
    optimizer.zero_grad()
    loss = cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


def test_a_cell_trains_a_model_of_an_earlier_one_watched(tmp_path, monkeypatch, capsys):
    output = Output(monkeypatch)
    x, y, model, optimizer = training()
    shell = Shell({"x": x, "y": y, "model": model, "optimizer": optimizer, "cross_entropy": cross_entropy})
    th.load_ipython_extension(shell)
    kind, magic = shell.magics["theodolite"]
    assert kind == "line_cell"
    magic(f"--out {tmp_path} --no-diagnosis --level cheap", CELL)
    assert "watching Sequential with SGD, loss cross_entropy" in capsys.readouterr().err
    assert json.loads((tmp_path / "run.json").read_text())["readings"]
    assert output.links == [str(tmp_path / "run.html")] and shell.names["loss"].item() < 0.6
    assert output.titles[0] == "Sequential" and output.titles[-1] == "Sequential, step 60"
    magic("--evry 3", CELL)
    assert "unrecognized arguments: --evry" in capsys.readouterr().err and len(output.links) == 1


def train(watch, x, y, model, optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
        watch(step)


def test_a_run_that_is_shown_follows_the_training_and_ends_with_its_diagnosis(monkeypatch):
    output = Output(monkeypatch)
    x, y, model, optimizer = run = training()
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), loss=cross_entropy, every=10, budget=float("inf"))
    watch.show()
    train(watch, *run, range(40))
    assert output.titles == ["Sequential", *(f"Sequential, step {step}" for step in range(0, 40, 10))]
    assert "th-dashboard" in output.pages[-1]["html"] and "No alarm during the run" in output.pages[-1]["html"]
    found = watch.diagnosed(1.0)
    assert len(output.pages) == 6 and found.headline.split(":")[0] in output.pages[-1]["html"]


def test_a_notebook_that_is_closed_does_not_end_a_training(monkeypatch, caplog):
    output = Output(monkeypatch)
    x, y, model, optimizer = run = training()
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), loss=cross_entropy, every=10, budget=float("inf"))
    watch.show()
    output.closed = True
    with caplog.at_level(logging.WARNING, logger="theodolite"):
        train(watch, *run, range(30))
    assert [r.getMessage() for r in caplog.records] == ["the run is no longer shown: the notebook is closed"]
    assert len(watch.records) == 3


def test_without_a_notebook_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    x, y, model, optimizer = training()
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), loss=cross_entropy)
    with pytest.raises(ImportError, match="expected a notebook, got no IPython; page_at= writes a page instead"):
        watch.show()
