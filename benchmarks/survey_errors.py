"""Are error bars honest when a budget thins the data? Redraws of the samples seen, against the value of all of them.

The samples of a network of digits are put into another order, again and again. Every instrument reads them in full, and then
may look at some of them alone. Counted is how often three errors cover the full value, reading by reading. The network is a
small one, trained here on 480 digits, so that all instruments are checked in minutes; ``--builtin`` takes the built-in one,
``--attention`` a transformer of the rows of the digits. A run of SGD has a length, which is part of what it says: with
``--seconds`` all redraws are of one short length, and the full value is the mean over them. With ``--again N`` an answer with
an error above its number is read once more with N samples, as a survey does with spare seconds, and that one is counted:
whether the choice spoils the error bars.

    python benchmarks/survey_errors.py [--redraws 20] [--samples 120] [--seed 0] [--builtin | --attention]
        [--seconds S] [--again N] [INSTRUMENT ...]
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
from theodolite.io.builtin_network import LR, MOMENTUM, builtin
from theodolite.io.datasets import digits

ROUNDING = 1e-5
"""Relative difference that the order of sums in single precision may make."""

Key = tuple[str, str, str]


SMALL, STEPS = 480, 200
"""Digits that the small network is trained on, and its steps."""


def small(*, attention: bool = False) -> Subject:
    """A network of one hidden layer, or of attention, trained on some digits until it fits most of them."""
    x, y = (part[:SMALL] for part in digits())
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(64, 24), torch.nn.ReLU(), torch.nn.Linear(24, 10))
    model: torch.nn.Module = Rows() if attention else plain
    origin = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    for step in range(STEPS):
        rows = torch.arange(32) + 32 * (step % (SMALL // 32))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return Subject(model.eval(), origin=origin)


class Rows(torch.nn.Module):
    """The eight rows of a digit as tokens, through two layers of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Linear(8, 16)
        self.place = torch.nn.Parameter(0.1 * torch.randn(8, 16))
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.head(self.encoder(self.embed(x.view(-1, 8, 8)) + self.place).mean(1))  # type: ignore[no-any-return]


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
    parser.add_argument("--seed", type=int, default=0, help="the first redraw's")
    parser.add_argument("--builtin", action="store_true")
    parser.add_argument("--attention", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--again", type=int)
    options = parser.parse_args()
    start, count = (builtin(), 10_000) if options.builtin else (small(attention=options.attention), SMALL)
    last: dict[Key, float] = {}
    hits: dict[Key, list[bool]] = {}
    widths: dict[Key, list[float]] = {}
    seen: dict[Key, list[tuple[Reading, float]]] = defaultdict(list)
    ready = redrawn(start.model, start.origin, 0, count)
    able = [name for name in catalogue.instrument_names() if not catalogue.instrument(name).missing(ready)]
    for name in options.instrument or able:
        repeated = 0
        for seed in range(options.seed, options.seed + options.redraws):
            subject = redrawn(start.model, start.origin, seed, count)
            if options.seconds is not None:
                subject.batches()  # what is read once takes no part of the time
                found = readings(name, subject.within(Allowance(options.seconds)))
                whole = {}
            else:
                whole = readings(name, subject)
                subject = redrawn(start.model, start.origin, seed, count)
                found = readings(name, subject.within(Allowance(samples=options.samples)))
                if options.again and _unknown(found):
                    later = readings(name, subject.within(Allowance(samples=options.again)))
                    found, repeated = (later, repeated + 1) if _unknown(later) <= _unknown(found) else (found, repeated)
            for key, reading in found.items():
                if options.seconds is not None or key in whole:
                    seen[key].append((reading, whole[key].measured if key in whole else math.nan))
        own = [key for key in seen if key[0] == name]
        for key in own:
            mean = sum(reading.measured for reading, _ in seen[key]) / len(seen[key])
            fulls = [mean if math.isnan(full) else full for _, full in seen[key]]
            hits[key] = [covers(reading, full) for (reading, _), full in zip(seen[key], fulls, strict=True)]
            widths[key], last[key] = [reading.stderr for reading, _ in seen[key]], fulls[-1]
        twice = f", {repeated} of {options.redraws} looked at again" if options.again else ""
        print(f"{name}: {sum(_good(hits[key]) for key in own)} of {len(own)} readings{twice}", flush=True)
        for key in own:
            if not _good(hits[key]):
                mean = sum(widths[key]) / len(widths[key])
                told = f"{sum(hits[key])} of {len(hits[key])}; full {last[key]:.4g}, error {mean:.2g}"
                print(f"  fails: {' | '.join(key)}: {told}", flush=True)
    failed = [key for key in hits if not _good(hits[key])]
    print(f"\n{len(hits) - len(failed)} of {len(hits)} readings cover the full value at least 19 times in 20")
    return 1 if failed else 0


def _unknown(found: dict[Key, Reading]) -> int:
    return sum(reading.stderr > abs(reading.measured) for reading in found.values())


def _good(hits: list[bool]) -> bool:
    return sum(hits) >= math.floor(0.95 * len(hits))


if __name__ == "__main__":
    raise SystemExit(main())
