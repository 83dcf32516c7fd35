"""Many laws at once: over workers, each verdict kept as its own file, a killed run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theodolite import catalogue
from theodolite.core.law import Law, Size, Verdict
from theodolite.core.reading import Estimate
from theodolite.io.files import plain, write_atomically
from theodolite.io.workers import Backend, completed, one_thread


def check(law: str | Law, breaking: str | None = None, *, size: Size = "quick", seed: int = 0) -> Verdict:
    """Run one law, by name or as an object; with ``breaking`` one of its assumptions is broken."""
    chosen = catalogue.law(law) if isinstance(law, str) else law
    return chosen.check(breaking, size=size, seed=seed)


@dataclass(frozen=True)
class Checked:
    """A verdict, and for each assumption that was broken on purpose whether the law then failed."""

    verdict: Verdict
    breaks: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """How laws are to be checked: everything their verdicts depend on."""

    size: Size = "quick"
    seed: int = 0
    break_assumptions: bool = False

    def fingerprint(self, name: str) -> str:
        """Changes when the law's file, the size, the seed or the package does: an old verdict is then not reused."""
        from theodolite import __version__

        source = catalogue.entry(name).path.read_bytes()
        parts = [__version__, self.size, str(self.seed), str(self.break_assumptions)]
        return hashlib.sha256(b"\0".join([source, *(part.encode() for part in parts)])).hexdigest()


def checked_laws(
    names: Iterable[str],
    run: Run = Run(),  # noqa: B008  immutable
    *,
    jobs: int = 1,
    backend: Backend = "loky",
    out: Path | None = None,
) -> Iterator[Checked]:
    """Yield each law's result as it is known. With ``out`` results are kept there, and those found there are reused."""
    names = tuple(names)
    waiting = []
    for name in names:
        kept = _kept(name, run, out)
        if kept:
            yield kept
        else:
            waiting.append(name)
    tasks = [
        (name, breaking, index, run)
        for name in waiting
        for breaking in _breakings(name, run)
        for index in range(len(catalogue.law(name).cases_of(run.size)))
    ]
    pending = {name: sum(task[0] == name for task in tasks) for name in waiting}
    estimates: dict[tuple[str, str | None, int], Estimate] = {}
    for number, estimate in completed(_measured, tasks, jobs=jobs, backend=backend):
        name, breaking, index, _ = tasks[number]
        estimates[name, breaking, index] = estimate
        pending[name] -= 1
        if not pending[name]:
            yield _finished(name, run, estimates, out)


def _breakings(name: str, run: Run) -> list[str | None]:
    broken = [text for text, change in catalogue.law(name).assumes.items() if change] if run.break_assumptions else []
    return [None, *broken]


def _measured(name: str, breaking: str | None, index: int, run: Run) -> Estimate:
    law = catalogue.law(name)
    with one_thread():  # sums in one order: verdicts are then equal whatever the number of workers
        return law.measured(law.cases_of(run.size)[index], breaking=breaking, size=run.size, seed=run.seed)


def _finished(name: str, run: Run, estimates: Mapping[Any, Estimate], out: Path | None) -> Checked:
    law = catalogue.law(name)
    cases = range(len(law.cases_of(run.size)))
    by_breaking = {breaking: [estimates[name, breaking, i] for i in cases] for breaking in _breakings(name, run)}
    result = _checked(law, run, by_breaking)
    if out is not None:
        record = {
            "fingerprint": run.fingerprint(name),
            **verdict_record(result),
            "estimates": [[breaking, [[e.value, e.stderr] for e in found]] for breaking, found in by_breaking.items()],
        }
        write_atomically(_file(name, out), json.dumps(plain(record), indent=1, allow_nan=False))
    return result


def _checked(law: Law, run: Run, by_breaking: Mapping[str | None, list[Estimate]]) -> Checked:
    breaks = {b: law.verdict(found, size=run.size).broken for b, found in by_breaking.items() if b is not None}
    return Checked(law.verdict(by_breaking[None], size=run.size), breaks)


def _kept(name: str, run: Run, out: Path | None) -> Checked | None:
    if out is None or not _file(name, out).exists():
        return None
    try:
        record = json.loads(_file(name, out).read_text(encoding="utf-8"))
        if record["fingerprint"] != run.fingerprint(name):
            return None
        estimates = {b: [Estimate(_number(v), _number(e)) for v, e in found] for b, found in record["estimates"]}
        return _checked(catalogue.law(name), run, estimates)
    except (ValueError, KeyError, TypeError):  # not a file of ours, or of another version: measure again
        return None


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _file(name: str, out: Path) -> Path:
    return out / "verdicts" / f"{name}.json"


def verdict_record(result: Checked) -> dict[str, Any]:
    """A verdict as a dictionary for JSON."""
    verdict, law = result.verdict, result.verdict.law

    def rows(readings: Iterable[Any]) -> list[dict[str, Any]]:
        return [
            {
                "quantity": r.quantity,
                "where": r.where,
                "measured": r.measured,
                "stderr": r.stderr,
                "expected_low": r.expected.low,
                "expected_high": r.expected.high,
                "status": r.status,
            }
            for r in readings
        ]

    record = {
        "law": law.name,
        "topic": law.topic,
        "claim": law.claim,
        "size": verdict.size,
        "holds": verdict.holds,
        "readings": rows(verdict.readings),
        "breaks": dict(result.breaks),
    }
    return record | ({"erratum": law.erratum, "refuted": rows(verdict.refuted)} if law.erratum else {})
