"""How a diagnosis is made: exact facts first, then the experiment, then what is left.

Every ailment whose needs are met is asked for facts; one that raises is a line in what could not be judged, and the others stand.
Then all their interventions are tried on copies of the training, and the smallest that recovers what was lost gives the cause;
the signs that are gone in the cured copy are what it leads to. Work is counted, so that findings do not depend on the machine.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING

from theodolite import catalogue
from theodolite.core.ailment import SEVERITIES, Ailment, Finding, worst_first
from theodolite.core.budget import OutOfTimeError
from theodolite.core.run import Run
from theodolite.core.statistics import wilson_interval
from theodolite.core.subject import Subject

if TYPE_CHECKING:
    from theodolite.evidence.trial import Trial

TRIALS = "trials"
"""Under this name stands why no training could be tried on a copy."""

AFTER, LAST = "labels-unrelated", ("loss-stalls", "trained-too-short")
"""What is asked again when trials were made, and what is asked of a run where nothing else was found."""

LEAST_WORK = 2.0
"""Nominal seconds that a diagnosis may take in any case."""

LIMIT, TIMES = 120.0, 30.0
"""Seconds by the clock that end a diagnosis, and the multiple of its work where that is more: far beyond what a machine under
load takes, so that only one that hangs is cut short."""

isolated = True
"""Whether an ailment that raises is a line among what could not be judged; tests set it False, so that it raises."""


@dataclass
class Judgement:
    """Findings, the ailments that were judged, and those that could not be, with the reason."""

    findings: list[Finding] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    unjudged: dict[str, str] = field(default_factory=dict)
    unfinished: bool = False
    seconds: float = 0.0

    @contextmanager
    def asking(self, name: str) -> Iterator[None]:
        """What is raised inside is said in a line, and the rest goes on."""
        try:
            yield
        except OutOfTimeError:
            self.unfinished = True
            self.unjudged[name] = "the time limit was reached"
        except Exception as error:
            if not isolated:
                raise
            said = " ".join(str(error).split())[:200] or type(error).__name__
            self.unjudged[name] = f"could not be judged: {type(error).__name__}: {said}"


def judgement_of(subject: Subject, *, budget: float) -> Judgement:
    """All that can be found of the subject within a budget of nominal seconds."""
    began = time.perf_counter()
    found = Judgement()
    names = catalogue.ailment_names()
    needs = {name: _missing(name, subject) for name in names}
    for name, missing in needs.items():
        if missing:
            found.unjudged[name] = f"needs {', '.join(missing)}"
    able = [catalogue.ailment(name) for name, missing in needs.items() if not missing]
    with _prepared(subject, budget):
        _facts(subject, able, found)
        if subject.model is not None and any(one.interventions is not None for one in able):
            with found.asking(TRIALS):
                _experiment(subject, able, found)
        last = {one.name: one for one in able if one.name in (AFTER, *LAST) and one.judge is not None}
        if AFTER in last and not any(finding.severity == "critical" for finding in found.findings):
            _ask(last[AFTER], subject, found)
        made = subject.seen.get("experiment")
        explained = made is not None and made.cause is not None
        for name in LAST:
            if name in last and not explained and not any(finding.severity != "note" for finding in found.findings):
                _ask(last[name], subject, found)
    untried = found.unjudged.get(TRIALS)
    if untried is not None:  # those that only a trial can judge were not
        found.unjudged |= {one.name: untried for one in able if one.judge is None and one.name not in found.unjudged}
    found.judged = [one.name for one in able if one.name not in found.unjudged]
    merged = _merged(found.findings)
    exact = {one.name for one in able if one.exact}
    told = sorted(worst_first(merged), key=lambda f: (SEVERITIES.index(f.severity), f.name not in exact))
    found.findings = [replace(finding, precision=precision_of(finding)) for finding in told]
    found.seconds = time.perf_counter() - began
    return found


def alarms_of(run: Run) -> tuple[Finding, ...]:
    """What the looks of a run say is wrong while it trains, worst first."""
    found = []
    for name in catalogue.ailment_names():
        facts = catalogue.ailment_facts(name)
        if not facts["live"] or ("fact" in facts and not run.silent.get(facts["fact"])):
            continue
        one = catalogue.ailment(name)
        if one.while_training is not None:
            found += [replace(finding, name=name) for finding in one.while_training(run)]
    return worst_first(found)


@contextmanager
def _prepared(subject: Subject, budget: float) -> Iterator[None]:
    """Set the budget of work, and one thread: sums in another order would be other numbers."""
    if subject.model is None:
        yield
        return
    import torch

    from theodolite.evidence.batches import price
    from theodolite.evidence.start import passes, steps_made
    from theodolite.evidence.work import Work

    subject.seen["work"] = Work()
    work = LEAST_WORK
    if subject.has("data"):
        size = min(256, len(subject.data.first()))
        work = max(work, steps_made(subject) * passes(subject) * price(subject).step(size))
    work = min(budget, work)
    subject.seen["work"] = Work(work, max(LIMIT, TIMES * work) if math.isfinite(budget) else math.inf, budget)
    before = torch.get_num_threads()
    one = all(p.device.type == "cpu" for p in subject.model.parameters())
    try:
        if one and before != 1:
            torch.set_num_threads(1)
        yield
    finally:
        subject.seen["work"].limit = math.inf  # what a page asks for later is not part of it
        if one and before != 1:
            torch.set_num_threads(before)


def _missing(name: str, subject: Subject) -> list[str]:
    return sorted(need for need in catalogue.ailment_facts(name)["needs"] if not subject.has(need))


def _facts(subject: Subject, able: Iterable[Ailment], found: Judgement) -> None:
    for one in able:
        if one.judge is not None and one.name not in LAST:
            _ask(one, subject, found)


def _ask(one: Ailment, subject: Subject, found: Judgement) -> None:
    assert one.judge is not None
    with found.asking(one.name):
        found.findings += [replace(finding, name=one.name) for finding in one.judge(subject)]


def _experiment(subject: Subject, able: list[Ailment], found: Judgement) -> None:
    """Try all interventions, unless an exact fact already says that the training is not what it is meant to be."""
    from theodolite.evidence.experiment import LONGER, experiment, has_won, take_on
    from theodolite.evidence.interventions import Intervention
    from theodolite.evidence.start import steps_made

    signs = {one.name for one in able if one.sign is not None}
    if any(finding.severity == "critical" and finding.name not in signs for finding in found.findings):
        return
    if subject.has("loss") and steps_made(subject) and has_won(subject):
        return  # nothing can have cost it much
    subject = _with_an_optimizer(subject)
    pool: list[Intervention] = []
    for one in able:
        if one.interventions is not None:
            with found.asking(one.name):
                pool += [replace(i, ailment=one.name) for i in one.interventions(subject)]
    with found.asking(TRIALS):
        made = subject.seen["experiment"] = experiment(subject, pool)
        if made.why_not:
            found.unjudged[TRIALS] = made.why_not
        cause = made.cause  # going on is the last thing to say, and a small lack of steps is only a note
        open_still = cause is None or not cause.misses_much or cause.intervention.rank >= LONGER
        if open_still and not made.why_not and made.alive and steps_made(subject):
            take_on(made, held_back=any(one.name in LAST and one.judge and [*one.judge(subject)] for one in able))
        cause = made.cause
        if cause is None:
            if made.too_short:
                few, run = made.arms["as it is"].steps, steps_made(subject)
                found.unjudged[TRIALS] = (
                    f"copies learn nothing in {few:,} of the run's {run:,} steps, and more cost too much"
                )
            return
        finding = replace(cause.intervention.finding(cause), name=cause.intervention.ailment)
        gone = _gone(subject, able, cause.trial, finding.name)
        found.findings = [f for f in found.findings if f.name not in gone]
        found.findings.append(replace(finding, leads_to=gone))


ASSUMED = 1e-3
"""The step size of Adam, with which a network is tried out where no optimizer was given."""


def _with_an_optimizer(subject: Subject) -> Subject:
    """The same subject, with Adam where nobody said how it is trained; findings say so."""
    own = [] if subject.model is None else [p for p in subject.model.parameters() if p.requires_grad]
    if subject.optimizer is not None or not own or not subject.has("loss"):
        return subject
    import torch

    other = copy.copy(subject)  # what was measured of it is shared
    object.__setattr__(other, "optimizer", torch.optim.Adam(own, lr=ASSUMED))
    subject.seen["assumed"] = f"with Adam at lr={ASSUMED:g}, since no optimizer was given"
    return other


def _gone(subject: Subject, able: Iterable[Ailment], cured: Trial, cause: str) -> tuple[str, ...]:
    """The signs that show in the network and not in the cured copy, which is shown the batches that it was trained on."""
    other, rows = subject.at(cured.model), cured.change.rows
    for name in ("work", "price", "task"):
        if name in subject.seen:
            other.seen[name] = subject.seen[name]
    for name in ("batches", "validation batches", "validation parts"):
        if name in subject.seen:
            other.seen[name] = subject.seen[name] if rows is None else [rows(b) for b in subject.seen[name]]
    if "split" in subject.seen:
        parts = subject.seen["split"]
        other.seen["split"] = parts if rows is None else tuple([rows(b) for b in part] for part in parts)
    found = []
    for one in able:
        if one.sign is None or one.name == cause:
            continue
        try:
            if one.sign(subject) and not one.sign(other):
                found.append(one.name)
        except (RuntimeError, ValueError, TypeError, IndexError):
            if not isolated:
                raise
    return tuple(sorted(found))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding a name: the worst, and of equals the one that was tried."""
    kept: dict[str, Finding] = {}
    for finding in findings:
        other = kept.get(finding.name)
        if other is None or SEVERITIES.index(finding.severity) <= SEVERITIES.index(other.severity):
            kept[finding.name] = finding
    return list(kept.values())


def precision_of(finding: Finding) -> str:
    """How often such a finding was right on runs whose fault was known, in words; nothing of a note."""
    right, raised = counted_findings().get(finding.name, (0, 0))
    if not raised or finding.severity == "note":
        return ""
    middle, half = wilson_interval(right / raised, raised, sigmas=2.0)
    ends = f"{max(0.0, middle - half):.0%} to {min(1.0, middle + half):.0%}"
    return f"right in {right} of {raised} test runs whose fault was known ({ends})"


@functools.cache
def counted_findings() -> Mapping[str, tuple[int, int]]:
    """Of each ailment how often its finding was right and how often it was raised, on runs that no threshold was chosen on."""
    file = resources.files("theodolite.evidence") / "clinic.json"
    return {name: (right, raised) for name, (right, raised) in json.loads(file.read_text()).items()}
