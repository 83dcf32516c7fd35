"""Which LoRA rank is enough: the advised one, half and twice of it, beside full fine-tuning, on two tasks.

    PYTHONPATH=src python -m benchmarks.lora_rank [--tasks teacher cipher] [--out FILE]

The advice is `th.objective_dimension` with the rank of the adapter as the dimension: the smallest rank whose fine-tuning reaches
95 % of what full fine-tuning gains on held-out data. It is found with some seeds and tried with others. `teacher`: a network and
a copy of it whose matrices were changed by a matrix of rank 12. `cipher`: a byte GPT trained on Python's documentation,
fine-tuned on the same text with its lower-case letters exchanged; embedding and head are frozen.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import torch
import torch.nn.functional as F
from benchmarks.language import Gpt, token_loss, windows
from torch import Tensor, nn

import theodolite as th

REACHED = 0.95
FOUND_BY, TRIED_BY = 2, 3
"""Seeds that the rank is found with, and others that it is tried with."""


def network(width: int = 48) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)
    )


class Task:
    """A base model, data to fine-tune it on and data to judge it by; ``targets`` are the layers that adapters are put into."""

    steps: int
    batch: int
    lr: float
    lora_lr: float
    targets: tuple[str, ...]
    loss: Callable[[Any, Any], Tensor]
    base: nn.Module
    training: tuple[Tensor, Tensor]
    held: tuple[Tensor, Tensor]

    def held_loss(self, model: nn.Module) -> float:
        model.eval()
        with torch.no_grad():
            return float(self.loss(model(self.held[0]), self.held[1]))

    def tuned(self, rank: int | None, seed: int) -> nn.Module:
        """The base fine-tuned as a whole, or by adapters of some rank."""
        torch.manual_seed(seed)
        model = copy.deepcopy(self.base)
        if rank is None:
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(any(name.startswith(f"{t}.") or f".{t}." in name for t in self.targets))
        else:
            config = peft.LoraConfig(r=rank, lora_alpha=rank, target_modules=list(self.targets), bias="none")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = peft.inject_adapter_in_model(config, model)
        own = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.Adam(own, lr=self.lr if rank is None else self.lora_lr)
        draw = torch.Generator().manual_seed(seed)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps)
        model.train()
        for _ in range(self.steps):
            rows = torch.randint(0, len(self.training[0]), (self.batch,), generator=draw)
            value = self.loss(model(self.training[0][rows]), self.training[1][rows])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            schedule.step()
        return model

    def gain(self, model: nn.Module) -> float:
        """What fine-tuning has gained on held-out data; never less than a little."""
        return max(1e-6, self.start - self.held_loss(model))

    @functools.cached_property
    def start(self) -> float:
        return self.held_loss(self.base)


class Teacher(Task):
    steps, batch, lr, lora_lr = 500, 128, 8e-3, 1e-2
    targets = ("0", "2", "4")
    loss = staticmethod(F.mse_loss)

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.base = network()
        teacher = copy.deepcopy(self.base)
        with torch.no_grad():
            for layer in teacher:
                if isinstance(layer, nn.Linear):
                    size = len(layer.weight)
                    layer.weight += torch.randn(size, 12) @ torch.randn(12, size) / math.sqrt(12 * size)
            x = torch.randn(12_000, 48)
            y = teacher(x)
        self.training, self.held = (x[:10_000], y[:10_000]), (x[10_000:], y[10_000:])


class Cipher(Task):
    steps, batch, lr, lora_lr = 150, 32, 2e-3, 1e-2
    targets = ("attend", "join", "feed.0", "feed.2")
    loss = staticmethod(token_loss)

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.base = Gpt(2, 64, 32)
        rows = windows(4000, 32, 0, held_out=False)
        optimizer = torch.optim.AdamW(self.base.parameters(), lr=3e-3)
        for step in range(300):
            some = rows[torch.randint(0, len(rows), (32,), generator=torch.Generator().manual_seed(step))]
            value = token_loss(self.base(some[:, :-1]), some[:, 1:])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        table = torch.arange(256)
        letters = torch.arange(97, 123)
        table[letters] = letters[torch.randperm(26, generator=torch.Generator().manual_seed(1))]
        own, other = table[rows], table[windows(200, 32, 1, held_out=True)]
        self.training, self.held = (own[:, :-1], own[:, 1:]), (other[:, :-1], other[:, 1:])


TASKS = {"teacher": Teacher, "cipher": Cipher}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in given.tasks:
        task = TASKS[name]()
        found = th.objective_dimension(task.tuned, task.gain, fraction=REACHED, repeats=FOUND_BY, largest=48)
        advised = max(1, math.ceil(found.value))
        seeds = range(100, 100 + TRIED_BY)
        full = [task.gain(task.tuned(None, seed)) for seed in seeds]
        shares = {}
        for rank in dict.fromkeys((max(1, advised // 2), advised, 2 * advised)):
            gains = [task.gain(task.tuned(rank, seed)) for seed in seeds]
            shares[rank] = sum(gains) / sum(full)
        right = shares[advised] >= REACHED and shares[max(1, advised // 2)] < REACHED
        rows.append(
            {"task": name, "advised": advised, "value": found.value, "error": found.stderr, "shares": shares}
            | {"right": right}
        )
        print(json.dumps(rows[-1]), flush=True)
        if given.out:
            given.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
