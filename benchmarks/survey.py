"""A survey of networks that people have, at several budgets: time, passes of the data, memory, readings, errors.

Each survey runs in a process of its own, so that its peak memory is its own. Networks are in survey_networks.py; pictures are
CIFAR-10 where its folder is given, else noise. ``minilm`` surveys the weights of all-MiniLM-L6-v2 where a checkpoint is given.
Errors are relative to their readings, where they are not zero: the middle one, and the one that nine of ten are below. One row
is one command, such as ``python benchmarks/survey.py vit --budgets 15``.

    python benchmarks/survey.py [--cifar FOLDER] [--minilm FILE] [--budgets 15 60 240] [--details] [NETWORK ...]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from survey_networks import NAMES, network


class Passes:
    """Counts the samples that a model is run on."""

    def __init__(self, model: Any) -> None:
        self.samples = 0
        model.register_forward_pre_hook(self._seen)

    def _seen(self, module: Any, args: Any) -> None:
        self.samples += len(args[0]) if args and hasattr(args[0], "shape") and args[0].ndim else 0


def measured(name: str, budget: float, options: argparse.Namespace) -> dict[str, Any]:
    """One survey in this process."""
    import torch

    import theodolite as th

    if name == "minilm":
        target, facts, samples, passes = options.minilm, {}, 1, None
    else:
        model, data = network(name, options.cifar)
        passes = Passes(model)
        target, samples = th.Subject(model, data=data, loss=torch.nn.functional.cross_entropy, lr=0.05), len(data[0])
        facts = {}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    found = th.survey(target, budget=budget, **facts)
    errors = sorted(r.stderr / abs(r.measured) for r in found.readings if r.stderr > 0 and r.measured)
    return {
        "network": name,
        "budget": budget,
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "passes": passes.samples / samples if passes else 0.0,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before": before / 1024,
        "answers": len(found.answers),
        "readings": len(found.readings),
        "error": statistics.median(errors) if errors else 0.0,
        "widest": errors[int(0.9 * len(errors))] if errors else 0.0,
        "slowest": {answer.question.name: round(answer.seconds, 1) for answer in found.answers},
        "skipped": {skipped.instrument: skipped.reason for skipped in found.skipped},
    }


def main() -> int:
    """Print a table; with --one print what one survey measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", nargs="*", default=[])
    parser.add_argument("--budgets", type=float, nargs="+", default=[15.0, 60.0, 240.0])
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--details", action="store_true", help="also each instrument's seconds and what was skipped")
    options = parser.parse_args()
    names = options.network or [*NAMES, *(["minilm"] if options.minilm else [])]
    if options.one:
        print(json.dumps(measured(names[0], options.budgets[0], options)))
        return 0
    heads = ("budget", "wall s", "CPU s", "passes", "peak MB", "answers", "readings", "error", "9 of 10")
    print(f"{'network':10} " + " ".join(f"{head:>8}" for head in heads), flush=True)
    for name in names:
        for budget in options.budgets:
            given = [
                word
                for key in ("cifar", "minilm")
                if (value := getattr(options, key))
                for word in (f"--{key}", str(value))
            ]
            command = [sys.executable, __file__, "--one", name, *given, "--budgets", str(budget)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(done.stdout.splitlines()[-1])
            cells = [f"{budget:.0f}s", *(f"{row[key]:.1f}" for key in ("wall", "cpu", "passes")), f"{row['peak']:.0f}"]
            cells += [str(row["answers"]), str(row["readings"]), f"{row['error']:.2g}", f"{row['widest']:.2g}"]
            print(f"{name:10} " + " ".join(f"{cell:>8}" for cell in cells), flush=True)
            if options.details:
                print("   ", row["slowest"], "\n   ", row["skipped"], flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
