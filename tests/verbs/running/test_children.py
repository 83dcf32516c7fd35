"""Processes that a script starts, watched like the script itself."""

import subprocess
import sys


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


CHILDREN = """
import torch
import torch.multiprocessing as mp


def train(rank, model):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(30):
        x = torch.randn(16, 3)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), x[:, :1]).backward()
        optimizer.step()


if __name__ == "__main__":
    mp.set_start_method("spawn")
    model = torch.nn.Linear(3, 1)
    model.share_memory()
    own = [mp.Process(target=train, args=(rank, model)) for rank in range(2)]
    [process.start() for process in own]
    [process.join() for process in own]
    print([process.exitcode for process in own])
"""


def test_the_first_of_some_child_processes_is_watched(tmp_path, warm):
    (tmp_path / "children.py").write_text(CHILDREN)
    watched = warm.ran(["-m", "theodolite", "run", "--every", "10", "--no-diagnosis", "children.py"], tmp_path)
    assert watched.stdout == "[0, 0]\n", watched.stderr
    assert watched.stderr.count("watching Linear with SGD, loss mse_loss") == 1
    assert "nothing was watched" not in watched.stderr
    assert (tmp_path / "run" / "run.html").exists()
