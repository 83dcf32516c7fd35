"""The end of a watched script: a last look, the diagnosis within its price, the page and the numbers."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.core.ailment import Finding, evidence, worst_first
from theodolite.evidence.thresholds import A_RUN, PART, PARTS, RARELY, SURE
from theodolite.io.files import json_ready, write_atomically
from theodolite.report.diagnosis import SHOWN
from theodolite.verbs.running.observing import Observer, from_here, said
from theodolite.verbs.running.probes import Steps
from theodolite.verbs.watching.training_hooks.training import is_silent

if TYPE_CHECKING:
    from theodolite.core.subject import Subject
    from theodolite.verbs.diagnosis import Diagnosis
    from theodolite.verbs.watching.watch import Watch

WELL = {0.3: 2.0, 0.7: 6.0}
"""Nominal seconds of the diagnosis of a run with nothing found while it ran, by the share of its start that its loss is below:
the first is plainly well, the second comes down."""
USUAL, SHARE = 10.0, 0.05
"""Nominal seconds of that of another run, and the share of its own steps that it may take."""
LEARNED = 0.9
"""A loss below that share of its start has learned: that a larger step would learn faster is then a note."""
OF_DATA = (
    "inputs-",
    "target",
    "labels-",
    "classes-",
    "loss-",
    "padding-",
    "memorises-",
    "outputs-",
    "statistics-",
    "too-narrow",
)
"""What is said of inputs, targets and answers, for which numbers of steps stand where whole steps are samples."""


WHOLE = "whole steps were done again, and show no samples"


def end(observer: Observer, *, diagnose: bool = True, budget: float = math.nan, quiet: bool = False) -> None:
    """Look a last time, judge, write, and say what was found in a few lines."""
    observer.finish()
    if is_silent():
        return
    if observer.watch is None:
        _end_without(observer, quiet=quiet)
        return
    watch, out = observer.watch, observer.out
    observer._looking = True
    if watch.gathered is None and (not watch.records or watch.records[-1].step < observer.steps):
        watch.look(observer.steps, whole=watch.every != "auto")
    budget = 0.0 if not diagnose else budget if not math.isnan(budget) else allowed(watch)
    if observer.restarts and budget > 0:
        budget = 0.0
        said(f"the weights were reset {observer.resets:,} times: no fix was tried on copies of so many trainings")
    found = _diagnosed(watch, budget)
    watch.html(out / "run.html")
    watch.json(out / "run.json")
    others, steps = observer.trained_beside()
    if others:
        models = "one more model" if others == 1 else f"{others:,} more models"
        said(
            f"the script also trained {models}, in {steps:,} steps, which {'was' if others == 1 else 'were'} not watched"
        )
    said(f"{found.headline} ({from_here(out / 'run.html')})")
    for finding in found.findings[:SHOWN]:
        said(f"{'note' if finding.severity == 'note' else 'fix'} for {finding.name}: {finding.remedy}")
    if watch.phase.name != "undecided" and found.healthy:  # "every step is stable" beside a fault would mislead
        said(f"{watch.phase.name}: {watch.phase.reason}")
    if found.unfinished or not diagnose:
        said(f"the diagnosis {'was cut short' if diagnose else 'was left out'}; theodolite diagnose {out} finishes it")
    watch.close()


def allowed(watch: Watch) -> float:
    """Nominal seconds that the diagnosis of this run may take."""
    bad = any(finding.severity != "note" for finding in watch.findings)
    losses = [r.facts["step_loss"] for r in watch.records if "step_loss" in r.facts]
    left = losses[-1] / losses[0] if len(losses) > 1 and losses[0] > 0 and not bad else math.inf
    for share, seconds in WELL.items():
        if left < share:
            return seconds
    from theodolite.evidence.batches import price

    steps = watch.records[-1].step if watch.records else 0
    a_step = price(watch.subject).step(len(watch.subject.data.first()))
    return max(USUAL, SHARE * steps * a_step)


def _diagnosed(watch: Watch, budget: float) -> Diagnosis:
    """The diagnosis, with a bar of how far it is; ctrl-C ends it, and what is known by then stands."""
    subjects: list[Subject] = []

    def keep(subject: Subject) -> None:
        subjects.append(subject)
        losses = [r.facts["step_loss"] for r in watch.records if "step_loss" in r.facts]
        if isinstance(watch.model, Steps):
            subject.seen["sample"] = "training step"
        if isinstance(watch.model, Steps) and losses:  # whole steps have no answer to be laid beside a constant one
            subject.seen.update({"constants": [], "constant loss": losses[0], "judged majority": math.nan})

    with _progress(subjects, budget), _interruptible(subjects):
        return watch.diagnosed(
            budget, on_subject=keep, on_diagnosis=lambda found: _of_a_script(_with_live(found, watch, subjects), watch)
        )


def _with_live(found: Diagnosis, watch: Watch, subjects: list[Subject]) -> Diagnosis:
    """What stands of the looks, where no trial has said more of it."""
    made = subjects[0].seen.get("experiment") if subjects else None
    tried = made is not None and not made.why_not and not isinstance(watch.model, Steps)
    named = {finding.name for finding in found.findings}
    live = [finding for finding in watch.findings if finding.name not in named]
    if tried:  # a trial tells more than a look, but a run that has come to nothing has not been explained by none
        well = all(finding.severity == "note" for finding in found.findings)
        live = [finding for finding in live if well and finding.severity == "critical"]
    return replace(found, findings=worst_first((*live, *found.findings)))


def _of_a_script(found: Diagnosis, watch: Watch) -> Diagnosis:
    """A script that learns still when it ends has no fault: how long it runs is its author's, and worth a note."""
    losses = [r.facts["step_loss"] for r in watch.records if "step_loss" in r.facts]
    learned = len(losses) > 1 and losses[-1] < LEARNED * losses[0]
    calm = ("trained-too-short", "step-too-small") if learned else ("trained-too-short",)
    findings = [replace(f, severity="note") if f.name in calm else f for f in found.findings]
    if isinstance(watch.model, Steps):
        findings = [f for f in findings if not f.name.startswith(OF_DATA)]
        of_samples = [name for name in found.checked if name.startswith(OF_DATA)]
        left = tuple(name for name in found.checked if name not in of_samples)
        found = replace(found, checked=left, unchecked={**found.unchecked, **dict.fromkeys(of_samples, WHOLE)})
        if all(finding.severity == "note" for finding in findings):
            findings += _unrelated(watch)
        if not _frozen_in_part(watch.model):  # a network that only makes a loss is frozen on purpose
            findings = [f for f in findings if f.name != "frozen-by-mistake"]
    return replace(found, findings=worst_first(findings))


def _unrelated(watch: Watch) -> Iterator[Finding]:
    """What whole steps tell of their targets, which the checks of samples cannot read.

    Had anything been learned of which target belongs to which input, dealing the targets out anew would raise the loss. Steps
    whose loss is no longer that of training, as where targets move with the run, say nothing.
    """
    assert isinstance(watch.model, Steps)
    steps, lately = watch.records[-1].step, watch.records[-1].facts.get("last_training_loss", math.nan)
    try:
        whole, right, other = watch.model.dealt_out()
    except (RuntimeError, ValueError, IndexError, TypeError):
        return
    if steps < A_RUN or len(right) < PARTS or not abs(statistics.fmean(whole) - lately) <= PART * abs(lately):
        return
    gained = [b - a for a, b in zip(right, other, strict=True)]
    error = statistics.stdev(gained) / len(gained) ** 0.5
    usual, mixed = statistics.fmean(right), statistics.fmean(other)
    mean = statistics.fmean(gained)
    if not any(gained) or mean > SURE * error or mean + SURE * error > RARELY * abs(mixed):
        return  # a language model that knows little more than how often words occur has learned that much
    yield Finding(
        name="labels-unrelated",
        severity="warning",
        where="targets",
        says=f"After {steps:,} steps the loss is {usual:.3g}, and {mixed:.3g} when the targets of a batch are shuffled among its "
        "samples: the network has not learned which target belongs to which input. They may belong to other inputs.",
        remedy="look at ten samples with their targets; check that "
        "inputs and targets were shuffled, sorted or joined with the same index",
        evidence=(evidence("loss with shuffled targets, less the loss", mean, stderr=error),),
    )


def _frozen_in_part(model: Steps) -> bool:
    """Whether a network that a script calls is frozen in part, and not as a whole."""
    asks = [{p.requires_grad for p in part.parameters()} for part in model.parts]
    return {True, False} in asks


@contextlib.contextmanager
def _interruptible(subjects: list[Subject]) -> Iterator[None]:
    """The first ctrl-C lets the work run out of time: every question that is left is not judged, and says so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        for subject in subjects:
            if "work" in subject.seen:
                subject.seen["work"].limit = 0.0
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _progress(subjects: list[Subject], budget: float) -> Iterator[None]:
    """A bar on a terminal, by the work that was spent; elsewhere one line where it lasts."""
    if budget <= 0:
        yield
        return
    over = threading.Event()

    def show() -> None:
        began, told = time.monotonic(), False
        bar, task = _bar(budget)
        with bar if bar is not None else contextlib.nullcontext():
            while not over.wait(0.3):
                spent = max((s.seen["work"].spent for s in list(subjects) if "work" in s.seen), default=0.0)
                if bar is not None:
                    bar.update(task, completed=min(spent, budget))
                elif not told and time.monotonic() - began > 3.0:
                    told = True
                    said("trying fixes on copies of the run; Ctrl-C stops and keeps what was found")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _bar(budget: float) -> tuple[Any, Any]:
    from theodolite.report.progress import _on_terminal

    if not _on_terminal():
        return None, None
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:  # a notebook
        return None, None
    bar = Progress(console=console, transient=True)
    return bar, bar.add_task("diagnosis (Ctrl-C stops and keeps what was found)", total=budget)


def _end_without(observer: Observer, *, quiet: bool) -> None:
    found = observer.values()
    if not found and not observer._alarms.standing:
        if not quiet:
            said("nothing was watched: no backward pass followed by a step was seen")
        return
    write_atomically(observer.out / "run.json", json.dumps(json_ready(_values(observer)), indent=2) + "\n")
    place = _page(observer, observer.out)
    for seen in found:
        whose = "" if len(found) == 1 else f" of {type(seen.optimizer).__name__} on {seen.size:,} parameters"
        first, last = (seen.records[place].facts["loss"] for place in (0, -1))
        said(f"the loss{whose} went from {first:.4g} to {last:.4g} ({place})")


def _page(observer: Observer, out: Path) -> Path:
    """The losses over the steps, where that is all that is known."""
    from theodolite.verbs.watching.history import values_page

    records = [record for seen in observer.values()[:1] for record in seen.records]
    page = values_page(records, tuple(observer._alarms.standing.values()))
    return write_atomically(out / "run.html", page)


def _values(observer: Observer) -> dict[str, Any]:
    """What ``run.json`` holds where only values of the loss are known."""
    from theodolite.verbs.diagnosis import SEEN, Diagnosis

    found = observer.values()
    standing = tuple(observer._alarms.standing.values())
    return {
        "steps": found[0].steps if found else 0,
        "losses": [{"step": r.step, "loss": r.facts["loss"]} for seen in found[:1] for r in seen.records],
        "alarms": [line for seen in found for r in seen.records for line in r.alarms],
        "diagnosis": Diagnosis("loss", standing, (SEEN,)).document(),
    }
