"""Are error bars honest when a budget thins the data? Redraws of the samples seen, against the value of all of them.

The samples of a network of digits are put into another order, again and again. Every instrument reads them in full, and then
may look at some of them alone. Counted is how often three errors cover the full value, reading by reading. The network is a
small one, trained here on 480 digits, so that all instruments are checked in minutes; ``--builtin`` takes the built-in one.

    python benchmarks/survey_errors.py [--redraws 20] [--samples 120] [--builtin] [INSTRUMENT ...]
"""

from __future__ import annotations

import argparse
import math
import re
from collections import defaultdict

import torch

import theodolite as th
from theodolite import catalogue
from theodolite.core.budget import Allowance
from theodolite.core.reading import SIGMAS, Reading
from theodolite.core.subject import Subject
from theodolite.io.builtin_network import LR, MOMENTUM, builtin, digits

ROUNDING = 1e-5
"""Relative difference that the order of sums in single precision may make."""

Key = tuple[str, str, str]


SMALL, STEPS = 480, 200
"""Digits that the small network is trained on, and its steps."""


def small() -> Subject:
    """A network of one hidden layer, trained on some digits until it fits most of them."""
    x, y = (part[:SMALL] for part in digits())
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 24), torch.nn.ReLU(), torch.nn.Linear(24, 10))
    origin = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    for step in range(STEPS):
        rows = torch.arange(32) + 32 * (step % (SMALL // 32))
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimiser.step()
    return Subject(model, origin=origin)


def redrawn(model: torch.nn.Module, origin: object, seed: int, count: int) -> Subject:
    """The network with its samples in another order."""
    x, y = (part[:count] for part in digits())
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    return Subject(
        model,
        data=(x[order], y[order]),
        loss=torch.nn.functional.cross_entropy,
        lr=LR,
        momentum=MOMENTUM,
        origin=origin,
    )


def readings(name: str, subject: Subject) -> dict[Key, Reading]:
    """An instrument's readings by quantity and place; numbers of samples and draws in the place do not count."""
    found = th.read(name, subject)
    return {(name, r.quantity, r.where if "." in r.where else re.sub(r"\d+ ", "", r.where)): r for r in found}


def covers(reading: Reading, full: float) -> bool:
    """Whether three errors reach the full value."""
    return abs(reading.measured - full) <= SIGMAS * reading.stderr + ROUNDING * max(abs(full), abs(reading.measured))


def main() -> int:
    """Print each reading's coverage, those that fail last; 1 where one covers fewer than 19 of 20 times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instrument", nargs="*")
    parser.add_argument("--redraws", type=int, default=20)
    parser.add_argument("--samples", type=int, default=120)
    parser.add_argument("--builtin", action="store_true")
    options = parser.parse_args()
    start, count = (builtin(), 10_000) if options.builtin else (small(), SMALL)
    last: dict[Key, float] = {}
    hits: dict[Key, list[bool]] = defaultdict(list)
    widths: dict[Key, list[float]] = defaultdict(list)
    for name in options.instrument or catalogue.instrument_names():
        for seed in range(options.redraws):
            whole = readings(name, redrawn(start.model, start.origin, seed, count))
            subject = redrawn(start.model, start.origin, seed, count).within(Allowance(samples=options.samples))
            for key, reading in readings(name, subject).items():
                if key in whole:
                    hits[key].append(covers(reading, whole[key].measured))
                    widths[key].append(reading.stderr)
                    last[key] = whole[key].measured
        own = [key for key in hits if key[0] == name]
        print(f"{name}: {sum(_good(hits[key]) for key in own)} of {len(own)} readings", flush=True)
        for key in own:
            if not _good(hits[key]):
                mean = sum(widths[key]) / len(widths[key])
                told = f"{sum(hits[key])} of {len(hits[key])}; full {last[key]:.4g}, error {mean:.2g}"
                print(f"  fails: {' | '.join(key)}: {told}", flush=True)
    failed = [key for key in hits if not _good(hits[key])]
    print(f"\n{len(hits) - len(failed)} of {len(hits)} readings cover the full value at least 19 times in 20")
    return 1 if failed else 0


def _good(hits: list[bool]) -> bool:
    return sum(hits) >= math.floor(0.95 * len(hits))


if __name__ == "__main__":
    raise SystemExit(main())
