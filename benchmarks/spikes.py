"""A spike planted into trainings: is it found within two looks, and is it told which of three it is?

    PYTHONPATH=src python -m benchmarks.spikes [--seeds 2] [--first 0] [--out FILE]

One batch of noise, one step thirty times too large, one layer scaled by ten, each in five kinds of networks (a byte GPT, a
convolutional, a plain and a recurrent network on digits, a regression) and as many seeds; and the same trainings without a
spike, of which nothing may be said.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from benchmarks.language import Gpt, token_loss, windows
from sklearn.datasets import load_digits
from torch import Tensor, nn

import theodolite as th

STEPS, EVERY, LR_TIMES, SCALED = 160, 20, 30.0, 10.0
PLANTS = ("batch", "step", "weights")


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(8, 48, batch_first=True), nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x.reshape(len(x), 8, 8))[0][:, -1])


def digits() -> tuple[Tensor, Tensor]:
    found = load_digits()
    return torch.tensor(found.data / 8 - 1, dtype=torch.float32), torch.tensor(found.target)


def waves() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(2000, 8, generator=draw)
    return x, torch.sin(0.5 * x @ torch.randn(8, 1, generator=draw))


def tokens() -> tuple[Tensor, Tensor]:
    whole = windows(1500, 32, 0, held_out=False)
    return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()


def plain(*sizes: int) -> nn.Module:
    pairs = [[nn.Linear(a, b), nn.ReLU()] for a, b in itertools.pairwise(sizes)]
    return nn.Sequential(*[layer for pair in pairs for layer in pair][:-1])


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def adam(model: nn.Module, lr: float) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=lr)


def descent(model: nn.Module, lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], Callable[..., Tensor], Any, float, bool]] = {
    "gpt": (lambda: Gpt(2, 48, 32), tokens, token_loss, adam, 3e-3, True),
    "plain": (lambda: plain(64, 64, 64, 10), digits, F.cross_entropy, descent, 0.02, False),
    "convolutional": (convolutional, digits, F.cross_entropy, adam, 2e-3, False),
    "recurrent": (Recurrent, digits, F.cross_entropy, adam, 5e-3, True),
    "regression": (lambda: plain(8, 64, 64, 1), waves, F.mse_loss, adam, 3e-3, False),
}


def noise(x: Tensor, y: Tensor, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """A batch of the same shapes that has nothing to do with the data."""
    if x.is_floating_point():
        other = 3 * torch.randn(x.shape, generator=draw)
    else:
        other = torch.randint(32, 127, x.shape, generator=draw)
    if y.is_floating_point():
        return other, 5 * torch.randn(y.shape, generator=draw)
    return other, torch.randint(0, int(y.max()) + 1, y.shape, generator=draw)


def one(kind: str, plant: str, seed: int) -> dict[str, Any]:
    build, data, loss, optimizer_of, lr, clips = KINDS[kind]
    torch.manual_seed(seed)
    model, (x, y) = build(), data()
    optimizer = optimizer_of(model, lr)
    draw = torch.Generator().manual_seed(seed)
    at = int(torch.randint(90, 121, (1,), generator=draw))
    told: list[tuple[int, Any]] = []
    watch = th.Watch(
        model,
        probe=(x[:64], y[:64]),
        loss=loss,
        optimizer=optimizer,
        every=EVERY,
        level="cheap",
        budget=math.inf,
        on_finding=lambda step, finding: told.append((step, finding)),
    )
    layers = [p for p in model.parameters() if p.ndim > 1]
    for step in range(STEPS):
        rows = torch.randint(0, len(x), (32,), generator=draw)
        inputs, targets = x[rows], y[rows]
        if plant == "batch" and step == at:
            inputs, targets = noise(inputs, targets, draw)
        if plant == "weights" and step == at:
            layers[int(torch.randint(0, len(layers), (1,), generator=draw))].data.mul_(SCALED)
        value = loss(model(inputs), targets)
        optimizer.zero_grad()
        value.backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = lr * (LR_TIMES if plant == "step" and step == at else 1.0)
        optimizer.step()
        watch(step)
    spikes = [(s, f) for s, f in told if f.name == "loss-spikes"]
    words = watch.silent.get("loss spikes", ())
    cause, found = (words[0], int(words[1])) if words else ("", -1)
    in_time = any(s <= at + 2 * EVERY and f.severity != "note" for s, f in spikes)
    right = in_time and cause == plant and abs(found - at) <= 1 if plant else not told
    said = spikes[0][1].says if spikes else ""
    return {
        "kind": kind,
        "plant": plant,
        "seed": seed,
        "at": at,
        "right": right,
        "cause": cause,
        "step": found,
        "says": said,
    } | {"alarms": [(s, f.name, f.severity) for s, f in told]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("theodolite").setLevel(logging.CRITICAL)
    rows = []
    for kind in given.kinds:
        for plant in (*PLANTS, ""):
            for seed in range(given.first, given.first + given.seeds):
                rows.append(one(kind, plant, seed))
                print("OK  " if rows[-1]["right"] else "MISS", json.dumps(rows[-1]), flush=True)
                if given.out:
                    given.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    sick, healthy = [r for r in rows if r["plant"]], [r for r in rows if not r["plant"]]
    print(
        f"planted spikes found in time and named {sum(r['right'] for r in sick)} of {len(sick)}; without one nothing said of "
        f"{sum(r['right'] for r in healthy)} of {len(healthy)}"
    )


if __name__ == "__main__":
    main()
