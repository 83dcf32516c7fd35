"""Two runs side by side: where they part first, what changed with it, and what is wrong with one and not with the other."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from theodolite.core.checks import InputError
from theodolite.io.documents import loaded

PARTED = 0.05
"""The relative difference of two readings from which on runs have parted."""
LOSS = "loss on the probe"
SHOWN = 6


@dataclass(frozen=True)
class RunRecord:
    """What a run left behind: its document, and each quantity as a mapping of steps to values."""

    name: str
    document: Mapping[str, Any]
    series: Mapping[str, Mapping[int, float]]

    @property
    def last_step(self) -> int:
        """The step of its last look."""
        return max((step for values in self.series.values() for step in values), default=0)

    @property
    def findings(self) -> dict[str, str]:
        """What was found, by name."""
        found = (self.document.get("diagnosis") or {}).get("findings", ())
        return {finding["name"]: finding["says"] for finding in found}


@dataclass(frozen=True)
class Difference:
    """One quantity at which two runs differ: the step, both values, and their relative difference."""

    quantity: str
    step: int
    one: float
    other: float

    @property
    def share(self) -> float:
        """Their difference as a share of the larger."""
        largest = max(abs(self.one), abs(self.other))
        return abs(self.one - self.other) / largest if largest else 0.0


@dataclass(frozen=True)
class RunComparison:
    """Two runs: ``first`` is where they part, ``beside`` what else differs at that look, the largest difference first."""

    one: RunRecord
    other: RunRecord
    first: Difference | None
    beside: tuple[Difference, ...]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        told = [vars(difference) | {"share": difference.share} for difference in self.beside]
        return {
            "runs": [self.one.name, self.other.name],
            "first": None if self.first is None else vars(self.first),
            "beside": told,
            "only": [
                sorted(a.findings.keys() - b.findings.keys())
                for a, b in ((self.one, self.other), (self.other, self.one))
            ],
        }

    def lines(self) -> list[str]:
        """In words."""
        found = [f"A: {_run_words(self.one)}", f"B: {_run_words(self.other)}"]
        if self.first is None:
            found.append(f"No difference: no reading differs by more than {PARTED:.0%} at a step that both have.")
        else:
            first = self.first
            found.append(
                f"First difference at step {first.step}: {first.quantity} is {first.one:.4g} in A, {first.other:.4g} in B."
            )
            found += [f"  also: {d.quantity} {d.one:.4g} and {d.other:.4g}" for d in self.beside[:SHOWN]]
        for run, other, letter in ((self.one, self.other, "A"), (self.other, self.one, "B")):
            for name in run.findings.keys() - other.findings.keys():
                found.append(f"Only {letter}: {name}: {run.findings[name]}")
        return found


def compared_runs(one: str | Path, other: str | Path) -> RunComparison:
    """Two runs that `theodolite run` or a watch left in folders, or their documents."""
    a, b = _run(one), _run(other)
    found = [
        Difference(quantity, step, a.series[quantity][step], b.series[quantity][step])
        for quantity in a.series.keys() & b.series.keys()
        for step in a.series[quantity].keys() & b.series[quantity].keys()
    ]
    parted = [d for d in found if d.share > PARTED and all(map(math.isfinite, (d.one, d.other)))]
    order = sorted(parted, key=lambda d: (d.step, d.quantity != LOSS, d.quantity))
    first = order[0] if order else None
    beside = [d for d in parted if first is not None and d.step == first.step and d.quantity != first.quantity]
    return RunComparison(a, b, first, tuple(sorted(beside, key=lambda d: -d.share)))


def is_run(place: str | Path) -> bool:
    """Whether that is a folder of a run, or its document."""
    path = Path(place)
    return (path.is_file() and path.suffix == ".json") or (path / "run.json").is_file()


def _run(place: str | Path) -> RunRecord:
    path = Path(place)
    path = path / "run.json" if path.is_dir() else path
    if not is_run(path):
        raise InputError(
            f"expected a run that left run.json, got {place}; pass the folder that theodolite run wrote to"
        )
    document = json.loads(path.read_text(encoding="utf-8"))
    if "losses" in document:  # only values of the loss are known
        values = {row["step"]: row["loss"] for row in document["losses"] if row["loss"] is not None}
        return RunRecord(str(place), document, {LOSS: values})
    document = loaded(path)
    series: dict[str, dict[int, float]] = {}
    for row in document["readings"]:
        if row["measured"] is not None:
            series.setdefault(row["quantity"], {})[row["step"]] = row["measured"]
        if row.get("lr") is not None:
            series.setdefault("learning rate", {})[row["step"]] = row["lr"]
    return RunRecord(str(place), document, series)


def _run_words(run: RunRecord) -> str:
    losses = run.series.get(LOSS, {})
    steps = sorted(losses)
    words = f"{run.name}: {run.document.get('subject', 'loss')}, {run.last_step:,} steps"
    if steps:
        words += f", loss {losses[steps[0]]:.4g} to {losses[steps[-1]]:.4g}"
    headline = (run.document.get("diagnosis") or {}).get("headline", "")
    return f"{words}. {headline}"
