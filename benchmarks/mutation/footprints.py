"""What each law says and which lines of theory it runs, in its measurement and in its prediction: found by running it once."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from theodolite import catalogue
from theodolite.core.law import Law
from theodolite.core.source_digest import source_digest

Lines = dict[str, list[int]]
LIMIT = 120  # seconds of waiting for one law


@dataclass(frozen=True)
class Footprint:
    """One law's estimates, and the lines of theory that its measurement and its prediction run, by module."""

    law: str
    digest: str
    holds: bool
    estimates: list[tuple[float, float]]
    measured: Lines
    predicted: Lines
    seconds: float

    def runs(self, part: str, module: str, lines: tuple[int, int]) -> bool:
        """Whether ``part`` ("measured" or "predicted") runs one of the lines ``first`` to ``last`` of a module."""
        return any(lines[0] <= line <= lines[1] for line in getattr(self, part).get(module, ()))


def footprints(store: Path, names: Iterable[str], *, jobs: int = 1) -> dict[str, Footprint]:
    """Those that are known while no source that a law may depend on has changed; the others are taken, each in a fork."""
    digests = {name: source_digest(catalogue.ROOT, catalogue.entry(name).path) for name in names}
    missing, running = sorted(digests.keys() - _stored(store, digests).keys()), set()
    for name in missing:
        if len(running) == jobs:
            running.discard(os.wait()[0])
        running.add(_forked(name, digests[name], store))
    for child in running:
        os.waitpid(child, 0)
    known = _stored(store, digests)
    for name in sorted(digests.keys() - known.keys()):
        print(f"{name} cannot be run", file=sys.stderr)
    return known


def _stored(store: Path, digests: dict[str, str]) -> dict[str, Footprint]:
    lines = store.read_text(encoding="utf-8").splitlines() if store.exists() else []
    every = [Footprint(**json.loads(line)) for line in lines]
    return {found.law: found for found in every if digests.get(found.law) == found.digest}


def _forked(name: str, digest: str, store: Path) -> int:
    """A process of its own, which adds a line to the store: what one law leaves in a cache is not run by the next."""
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.alarm(LIMIT)
            found = footprint(catalogue.law(name), digest)
            with store.open("ab", buffering=0) as file:  # one write a line: several processes add to it
                file.write((json.dumps(vars(found)) + "\n").encode())
        except BaseException as error:
            print(f"{name}: {error!r}", file=sys.stderr)
        finally:
            os._exit(0)
    return child


def footprint(law: Law, digest: str = "") -> Footprint:
    """Run a law and look on."""
    start = time.process_time()
    with lines_run() as measured:
        estimates = [law.measured(case) for case in law.cases]
    seconds = time.process_time() - start
    with lines_run() as predicted:  # what is undecided is measured again beside its prediction
        estimates = law.decided(estimates)
        verdict = law.verdict(estimates)
    pairs = [(float(e.value), float(e.stderr)) for e in estimates]
    return Footprint(law.name, digest, verdict.holds, pairs, _sorted(measured), _sorted(predicted), round(seconds, 3))


@contextlib.contextmanager
def lines_run() -> Iterator[dict[str, set[int]]]:
    """The lines of theory that are run inside, by module. A function whose lines were all seen is looked at no more."""
    theory = str(catalogue.ROOT / "theory") + os.sep
    found: dict[str, set[int]] = {}
    left: dict[object, set[int]] = {}

    def called(frame, event, argument):
        code = frame.f_code
        if code not in left:
            inside = code.co_filename.startswith(theory)
            left[code] = {line for *_, line in code.co_lines() if line} if inside else set()
        return stepped if left[code] else None

    def stepped(frame, event, argument):
        if event == "line":
            code = frame.f_code
            place = Path(code.co_filename).relative_to(catalogue.ROOT).as_posix() if left[code] else ""
            if place and frame.f_lineno in left[code]:
                found.setdefault(place, set()).add(frame.f_lineno)
                left[code].discard(frame.f_lineno)
        return stepped

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield found
    finally:
        sys.settrace(before)


def statement_spans(tree: ast.Module) -> list[tuple[int, int]]:
    """The first and last line of each statement; of one with a body only its head. The shortest come first."""
    spans = []
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt):
            body = getattr(statement, "body", None)
            last = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno
            spans.append((statement.lineno, last))
    return sorted(spans, key=lambda span: (span[1] - span[0], span))


def statement_lines(spans: list[tuple[int, int]], node: ast.expr) -> tuple[int, int]:
    """The lines of the innermost statement around an expression."""
    return next(span for span in spans if span[0] <= node.lineno <= span[1])


def _sorted(lines: dict[str, set[int]]) -> Lines:
    return {module: sorted(numbers) for module, numbers in sorted(lines.items())}
