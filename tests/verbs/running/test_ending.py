"""The end of a watched script: findings, page and status."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


def test_findings_are_printed_while_a_hot_script_trains(tmp_path, warm):
    path = str(EXAMPLES / "plain_loop.py")
    alone = warm.ran([path, "1", "100"], tmp_path)
    watched = warm.ran(["-m", "theodolite", "run", "--every", "4", "--level", "cheap", path, "1", "100"], tmp_path)
    assert (watched.stdout, watched.returncode) == (alone.stdout, 3)
    assert re.search(r"theodolite: step \d+: step too large: ", watched.stderr) and "lr at most" in watched.stderr
    assert (tmp_path / "run" / "run.html").exists()


STEPS = """
import torch
from torch import nn
torch.manual_seed(0)
halves = nn.Linear(3, 16)
last = nn.Linear(16, 4)
own = [*halves.parameters(), *last.parameters()]
optimizer = torch.optim.Adam(own, lr=1e-2)
centers = 2 * torch.randn(4, 6)
for step in range(80):
    y = torch.randint(4, (32,))
    x = centers[y] + torch.randn(32, 6)
    answers = last(torch.relu(halves(x[:, :3]) + halves(x[:, 3:])))
    y = y[ORDER]
    loss = LOSS
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""
NAMED = "nn.functional.cross_entropy(answers, y)"
BY_INDEX = "-(answers.softmax(1).clamp(1e-6)[range(32), y]).log().mean()"


@pytest.mark.parametrize("loss", [NAMED, BY_INDEX])
@pytest.mark.parametrize(
    "order", ["torch.randperm(32)", "torch.arange(32)", "torch.cat([torch.randperm(22), torch.arange(22, 32)])"]
)
def test_targets_of_other_inputs_are_told_where_whole_steps_are_samples(tmp_path, warm, loss, order):
    """A network that is called twice in a step: its samples cannot be cut out of it."""
    (tmp_path / "steps.py").write_text(STEPS.replace("LOSS", loss).replace("ORDER", order))
    watched = warm.ran(["-m", "theodolite", "run", "steps.py"], tmp_path)
    assert "done again step by step" in watched.stderr
    told = json.loads((tmp_path / "run" / "run.json").read_text())["diagnosis"]
    named = [f["name"] for f in told["findings"] if f["severity"] != "note"]
    assert named == (["labels-unrelated"] if order == "torch.randperm(32)" else [])
    assert "labels-unrelated" in told["unchecked"] and "units-dead" in told["checked"]


def test_a_column_of_answers_beside_a_row_of_targets_is_told_of_a_loss_of_ones_own(tmp_path, warm):
    code = STEPS.replace("nn.Linear(16, 4)", "nn.Linear(16, 1)").replace("y[ORDER]", "x.sum(1)")
    code = code.replace("last(torch.relu(halves(x[:, :3]) + halves(x[:, 3:])))", "model(x)")
    code = code.replace("own = ", "model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), last)\nown = ", 1)
    code = code.replace("*halves.parameters(), *last.parameters()", "*model.parameters()")
    for place, loss in enumerate(("((answers - y) ** 2).mean()", "((answers[:, 0] - y) ** 2).mean()")):
        (tmp_path / "own.py").write_text(code.replace("LOSS", loss))
        warm.ran(["-m", "theodolite", "run", "own.py"], tmp_path)
        told = json.loads((tmp_path / "run" / "run.json").read_text())["diagnosis"]
        named = [f["name"] for f in told["findings"] if f["severity"] != "note"]
        assert named == ([] if place else ["loss-mismatched"])


FOLDS = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(120, 4)
y = x.sum(1, keepdim=True)
for fold in range(3):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(60):
        rows = torch.randint(120, (16,))
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_models_that_are_trained_after_the_watched_one_are_mentioned(tmp_path, warm):
    (tmp_path / "folds.py").write_text(FOLDS)
    watched = warm.ran(["-m", "theodolite", "run", "folds.py"], tmp_path)
    assert "the script also trained 2 more models, in 120 steps, which were not watched" in watched.stderr
    (tmp_path / "folds.py").write_text(FOLDS.replace("range(3)", "range(1)"))
    watched = warm.ran(["-m", "theodolite", "run", "folds.py"], tmp_path)
    assert "watching Linear" in watched.stderr and "also trained" not in watched.stderr
