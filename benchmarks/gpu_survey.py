"""A survey of a ResNet-18 on a GPU at the default budget: what each instrument takes, in steps of training.

    python benchmarks/gpu_survey.py [--cifar FOLDER] [--budget 60s] [--network resnet18] [--device cuda]

A step is a gradient of all 256 pictures with an update, after a warm-up. A survey of a small network goes first, so that
libraries are loaded and handles made. At most 1,000 steps in all and 300 for one instrument are asked for.
"""

from __future__ import annotations

import argparse
import copy
import time
from pathlib import Path
from typing import Any

import torch
from survey_networks import NAMES, network
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.core.survey_budget import STEPS, STEPS_EACH


def waited(device: str) -> float:
    """The time, once the device is done with what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


def step_seconds(model: torch.nn.Module, data: tuple[Any, Any], device: str, *, steps: int) -> float:
    """One step of SGD on all samples, the mean of several."""
    own = copy.deepcopy(model).train()
    optimizer = torch.optim.SGD(own.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(own(data[0]), data[1]).backward()
        optimizer.step()

    step()
    step()
    started = waited(device)
    for _ in range(steps):
        step()
    return (waited(device) - started) / steps


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--network", choices=NAMES, default="resnet18")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=20, help="steps of training that are timed")
    options = parser.parse_args()
    device = options.device
    small = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).to(device)
    x, y = torch.randn(64, 8), torch.arange(64) % 3
    th.survey(small, data=(x, y), loss=cross_entropy, lr=0.1, budget=15)

    model, (x, y) = network(options.network, options.cifar)
    model, data = model.to(device), (x.to(device), y.to(device))
    step = step_seconds(model, data, device, steps=options.steps)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    started = waited(device)
    subject = th.Subject(model, data=data, loss=cross_entropy, lr=0.05)
    made = waited(device) - started
    found = th.survey(subject, budget=options.budget)
    wall = waited(device) - started
    print(f"{options.network}, {len(x)} samples, budget {options.budget}: one step of training {1000 * step:.2f} ms")
    print(f"{'instrument':20} {'seconds':>8} {'steps':>7} {'readings':>9}")
    for answer in sorted(found.answers, key=lambda answer: -answer.seconds):
        over = "  over" if answer.seconds > STEPS_EACH * step else ""
        row = f"{answer.question.name:20} {answer.seconds:8.2f} {answer.seconds / step:7.0f} {len(answer.readings):9d}"
        print(row + over)
    for skipped in found.skipped:
        print(f"{skipped.instrument:20} not read: {skipped.reason}")
    alone = sum(answer.seconds for answer in found.answers)
    print(
        f"instruments {alone:.2f} s; checks of the subject {made:.2f} s; visit and prices {wall - made - alone:.2f} s"
    )
    print(f"whole survey {wall:.2f} s, {wall / step:.0f} steps of {STEPS} asked for; {len(found.answers)} answers")
    if device.startswith("cuda"):
        print(f"{torch.cuda.get_device_name()}: peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
