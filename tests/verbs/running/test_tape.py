"""A loss of one's own, done again from the operations that were written down."""

import json
import subprocess
import sys

import pytest


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


OWN_LOSS = """
import torch
torch.manual_seed(0)
model, own = torch.nn.Linear(3, 1), torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([*model.parameters(), own], lr=LR)
x = torch.randn(64, 3)
for step in range(60):
    optimizer.zero_grad()
    loss = (model(x) + own - x[:, :1]).abs().pow(3).mean()  # no function of torch.nn.functional
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@pytest.mark.parametrize("lr", [0.01, 2.0])
def test_a_loss_of_ones_own_is_done_again_from_what_was_written_down(tmp_path, warm, lr):
    (tmp_path / "own.py").write_text(OWN_LOSS.replace("LR", str(lr)))
    watched = warm.ran(["-m", "theodolite", "run", "--every", "5", "own.py"], tmp_path)
    assert watched.stdout == warm.ran(["own.py"], tmp_path).stdout and watched.returncode == 0
    assert "watching Linear with SGD, loss of " in watched.stderr and "done again step by step" in watched.stderr
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert max(row["step"] for row in told["readings"]) == 60
    assert bool(told["alarms"]) == (lr > 1) == ("step too large" in watched.stderr)
    assert (tmp_path / "run" / "run.html").exists() and "findings" in told["diagnosis"]
