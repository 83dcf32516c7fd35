"""From a program that was written down to a model, its batches and its loss."""

import json
import subprocess
import sys

import pytest


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


CLOSURE = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).requires_grad_(False)
target = net(torch.rand(1, 6))
x = torch.rand(1, 6).requires_grad_(True)
optimizer = torch.optim.LBFGS([x])

def closure():
    optimizer.zero_grad()
    loss = ((net(x) - target) ** 2).mean() * 100
    loss.backward()
    return loss

for _ in range(4):
    print(round(float(optimizer.step(closure).detach()), 5))
"""


def test_a_closure_on_inputs_of_a_frozen_network_is_watched_and_is_no_fault(tmp_path, warm):
    (tmp_path / "closure.py").write_text(CLOSURE)
    watched = warm.ran(["-m", "theodolite", "run", "closure.py"], tmp_path)
    assert watched.returncode == 0, watched.stderr
    assert watched.stdout == warm.ran(["closure.py"], tmp_path).stdout
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert all(finding["severity"] == "note" for finding in told["diagnosis"]["findings"])


SCALED = """
import torch
torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.arange(64) % 2
model = torch.nn.Linear(6, 2)
optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
for step in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def seen_of(tmp_path, warm, code):
    (tmp_path / "train.py").write_text(code)
    watched = warm.ran(["-m", "theodolite", "run", "--out", "seen", "train.py"], tmp_path)
    return watched, json.loads((tmp_path / "seen" / "run.json").read_text())


def test_a_loss_that_is_scaled_for_its_gradients_is_read_as_it_is(tmp_path, warm):
    _, told = seen_of(tmp_path, warm, SCALED)
    losses = [row["measured"] for row in told["readings"] if row["quantity"] == "loss on the probe"]
    assert losses and max(losses) < 2


SECOND = """
import torch
from torch import nn
torch.manual_seed(0)
class Reader(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole, self.table, self.cell = whole, nn.Embedding(12, 8), nn.GRU(8, 16)
        self.out = nn.Linear(16, 12 if whole else 3)
    def forward(self, tokens, state):
        found, state = self.cell(self.table(tokens), state)
        answer = self.out(found if self.whole else found[-1])
        return (answer.reshape(-1, 12) if self.whole == "flat" else answer), state
whole = WHOLE
model = Reader(whole)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
state = torch.zeros(1, 20, 16)
for step in range(60):
    first = torch.randint(0, 12, (1, 20))
    tokens = (first + torch.arange(7).reshape(-1, 1)) % 12  # counting on: (places, samples)
    answer, state = model(tokens[:-1], state)
    state = state.detach()
    target = tokens[1:].reshape(-1) if whole else first[0] % 3
    loss = nn.functional.cross_entropy(answer.reshape(-1, answer.shape[-1]), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("whole", [False, True, "flat"])
def test_samples_along_the_second_axis_are_samples(tmp_path, warm, whole):
    """Sequences as recurrent networks take them, with a state that is carried on; one label each, or one at each place."""
    watched, told = seen_of(tmp_path, warm, SECOND.replace("WHOLE", repr(whole)))
    assert "watching Reader with Adam, loss" in watched.stderr and "step by step" not in watched.stderr
    assert "has stopped" not in watched.stderr, watched.stderr
    scores = told["diagnosis"]["scores"]
    assert scores["training accuracy"] > 0.6 and scores["loss when ignoring the input"] > 1.0
