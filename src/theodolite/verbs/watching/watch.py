"""Looks repeated while a model trains: each a record of readings, on disk when taken; the training is left as it was."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from theodolite.core.ailment import Finding
from theodolite.core.instrument import Answer, Skipped
from theodolite.core.reading import Reading, Series
from theodolite.core.records import COLUMNS, LEADING, Log, Record, table
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.io.files import plain, write_atomically
from theodolite.theory.dynamics import Moment, Phase, training_phase
from theodolite.theory.dynamics.stationarity import Sampler
from theodolite.verbs.watching.charting import (
    OptimizerEvents,
    chart_of,
    held_out_batches,
    optimizer_lr,
    optimizer_momentum,
    scores_of,
)
from theodolite.verbs.watching.looks import LEVELS, LOOKS, SHARPNESS, Batching, Level, Memory, Scene, looks_of
from theodolite.verbs.watching.starts import bare_model, full_precision, kept_probe, starting_weights, wait_for

AUTO = 0.05
"""The share of training time that ``every="auto"`` spends, unless ``budget`` says otherwise."""

DRAWN = 400
"""At most so many looks are drawn in a figure, evenly spread."""


@dataclass(eq=False, repr=False)
class Watch:
    """``watch(step, lr=lr)`` in any loop reads the model when a look is due, and otherwise returns at once.

    ``probe`` is a batch with its target (or a few): every look is on it, in evaluation mode. ``level``: ``cheap`` reads loss,
    gradient and travel; ``standard`` also sharpness, tangent kernel and collapse; ``full`` also the top Hessian subspace,
    gradient noise and stationarity, for which ``batch_size``, ``samples`` and ``sampler`` say how training draws batches.
    ``every`` is a number of steps; ``"auto"`` looks as often as ``budget``, a share of the training time, allows, and a
    number with a ``budget`` asks for both. With ``out`` each record is on disk when it is taken, and a run that starts again
    with the same folder goes on there, with the weights it first started from. ``writer`` is anything with ``add_scalar``.
    With ``optimizer`` its step size and momentum are read at each look, and `diagnosis` can tell what is wrong and what to
    type; ``validation`` is held-out data, whose loss and accuracy each look records.
    """

    model: nn.Module
    _: KW_ONLY
    probe: Any
    optimizer: torch.optim.Optimizer | None = None
    validation: Any = None
    loss: Callable[[Any, Any], Tensor] = cross_entropy
    every: int | Literal["auto"] = 100
    level: Level = "standard"
    out: str | Path | None = None
    writer: Any = None
    budget: float | None = None
    batch_size: int | None = None
    samples: int | None = None
    sampler: Sampler = "without replacement"
    name: str = ""
    records: list[Record] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        _check(self.every, self.level, self.budget)
        self.model = bare_model(self.model)
        if self.every == "auto" and self.budget is None:
            self.budget = AUTO
        self.subject = Subject(self.model, data=kept_probe(self.probe, self.model), loss=self.loss, name=self.name)
        if not self.subject.has("loss"):
            raise ValueError("expected a probe with a target for the loss, got inputs alone; pass (inputs, target)")
        self.events = None if self.optimizer is None else OptimizerEvents(self.optimizer)
        self._held_out = held_out_batches(kept_probe(self.validation, self.model), self.model)
        folder = None if self.out is None else Path(self.out)
        self._log = None if folder is None else Log(folder)
        self._memory = Memory(starting_weights(self.model, folder))
        if self._log is not None:
            self.records = self._log.records()
        last = self.records[-1] if self.records else None
        self._watching, self._training = (last.watching, last.training) if last else (0.0, 0.0)
        self._since: float | None = None  # when the last call to a look ended
        self._latest = 0.0  # when the last call came
        self._seen: int | None = None  # the last step told
        self._next = -math.inf if last is None or self.every == "auto" else last.step + self.every

    def __call__(self, step: int, *, lr: float | None = None, momentum: float = 0.0) -> Record | None:
        """Take a look if one is due; ``lr`` and ``momentum`` are those of the optimiser now."""
        if self._seen is None or step < self._seen:
            self._go_back_to(step)
        self._seen, self._latest = step, time.perf_counter()
        if step < self._next or not self._affordable():
            return None
        return self.look(step, lr=lr, momentum=momentum)

    def look(self, step: int, *, lr: float | None = None, momentum: float = 0.0) -> Record:
        """Take a look now, due or not, as at the end of training."""
        if lr is None and self.optimizer is not None:
            lr, momentum = optimizer_lr(self.optimizer), optimizer_momentum(self.optimizer)
        if lr is not None and not lr > 0:
            lr = None  # a schedule may begin or end at zero: there is no edge then
        if self._seen is None or (self.records and step <= self.records[-1].step):
            self._go_back_to(step)
        self._seen = step
        wait_for(self.model)
        started = self._latest = time.perf_counter()
        self._training = self._training_seconds()
        readings, notes, facts = self._readings(step, lr, momentum)
        phase = training_phase(_history([*self.records, Record(step, lr, momentum, facts=facts)]))
        seconds = time.perf_counter() - started
        record = Record(
            step,
            lr,
            momentum,
            tuple(readings),
            tuple(notes),
            phase.name,
            phase.reason,
            seconds,
            self._watching + seconds,
            self._training,
            facts,
        )
        self.records.append(record)
        if self._log is not None:
            self._log.append(record)
        if self.writer is not None:
            _write_scalars(self.writer, record)
        self._next = -math.inf if self.every == "auto" else step + self.every
        self._since = self._latest = time.perf_counter()
        self._watching += self._since - started
        return record

    @property
    def phase(self) -> Phase:
        """Lazy, stable, catapult, edge, divergent, dead or undecided, with the numbers that decided."""
        return training_phase(_history(self.records))

    @property
    def diagnosis(self) -> tuple[Finding, ...]:
        """What is wrong with the run so far, worst first, each with what to type; remedies are tried on copies before."""
        from theodolite.verbs.diagnosing import findings_of

        return findings_of(chart_of(self, self._memory.origin))

    @property
    def overhead(self) -> float:
        """Seconds spent on looks over seconds of training between the first call and the last; not a number before."""
        training = self._training_seconds()
        return self._watching / training if training > 0 else math.nan

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a reading, with its step."""
        return [row for record in self.records for row in record.rows()]

    def frame(self) -> Any:
        """A pandas DataFrame of `rows`."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("expected pandas for a frame, got none; pip install 'theodolite[pandas]'") from error
        return pandas.DataFrame(self.rows(), columns=[*LEADING, *COLUMNS])

    def csv(self, path: str | Path) -> Path:
        """The rows as a table for spreadsheets."""
        return write_atomically(path, table(self.rows(), (*LEADING, *COLUMNS)))

    def json(self, path: str | Path | None = None) -> str:
        """One JSON document; numbers that are not finite become null."""
        phase = self.phase
        document = {
            "subject": self.subject.name,
            "level": self.level,
            "overhead": self.overhead,
            "phase": {"name": phase.name, "reason": phase.reason},
            "notes": [{"step": r.step, "notes": list(r.notes)} for r in self.records if r.notes],
            "readings": self.rows(),
        }
        text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
        if path is not None:
            write_atomically(path, text + "\n")
        return text

    def html(self, path: str | Path | None = None) -> str:
        """One page with every series over the steps; with ``path`` it is also written there."""
        from theodolite.report.html import watch_page

        page = watch_page(self.subject.name, self._answers(), self._skipped(), self._facts(), phases=self._phases())
        if path is not None:
            write_atomically(path, page)
        return page

    def text(self, width: int = 120) -> str:
        """The last look as a table."""
        from theodolite.report.text import as_text, survey_table

        return as_text(survey_table(self._answers(), self._skipped()), width=width)

    def __str__(self) -> str:
        phase = self.phase
        return f"{self.text()}\n{phase.name}: {phase.reason}"

    def __repr__(self) -> str:
        last = f", last at step {self.records[-1].step}" if self.records else ""
        return (
            f"Watch({self.subject.name}, level={self.level!r}, every={self.every!r}: {len(self.records)} records{last})"
        )

    def _repr_html_(self) -> str:
        from theodolite.report.html import survey_fragment

        return survey_fragment(self.subject.name, self._answers(), self._skipped(), self._facts())

    def _readings(
        self, step: int, lr: float | None, momentum: float
    ) -> tuple[list[tuple[str, Reading]], list[str], dict[str, float]]:
        """Every look of the level; one that fails is told in a note and does not stop training or the others."""
        found: list[tuple[str, Reading]] = []
        notes: list[str] = []
        scene = Scene(
            self.subject.stepping(lr, momentum),
            self._memory,
            self.level,
            Batching(self.batch_size, self.samples, self.sampler),
        )
        with untouched(self.model), torch.enable_grad(), full_precision(self.model):
            for look in looks_of(self.level):
                try:
                    found += [(look.name, reading) for reading in look.read(scene)]
                except Exception as error:  # whatever fails here, training goes on
                    notes.append(f"{look.name}: {' '.join(str(error).split()) or type(error).__name__}")
                if look.name == "loss":
                    trouble = _trouble(scene, step)
                    if trouble:
                        return found, [*notes, trouble], scene.facts
                    scene.facts |= scores_of(self.subject, self._held_out)
        return found, notes, scene.facts

    def _affordable(self) -> bool:
        """Whether one more look, as dear as the last, stays within the budget."""
        if self.budget is None or not self.records or self._since is None:
            return True
        return self._watching + self.records[-1].seconds <= self.budget * self._training_seconds()

    def _training_seconds(self) -> float:
        return self._training + (0.0 if self._since is None else max(0.0, self._latest - self._since))

    def _go_back_to(self, step: int) -> None:
        """A run that is taken up at an earlier step does these again: later records give way."""
        kept = [record for record in self.records if record.step < step]
        if self._since is None:
            self._since = time.perf_counter()
        if len(kept) < len(self.records):
            self.records[:] = kept
            self._memory.forget_window()
            if self._log is not None:
                self._log.rewrite(kept)
            if self.every != "auto":
                self._next = kept[-1].step + self.every if kept else -math.inf

    def _answers(self) -> tuple[Answer, ...]:
        """The last reading of each quantity, with all its earlier ones as a series over steps."""
        series: dict[tuple[str, str], list[tuple[Record, Reading]]] = {}
        for record in self.records:
            for look, reading in record.readings:
                series.setdefault((look, reading.quantity), []).append((record, reading))
        spent = {look.name: look.instrument for look in LOOKS}
        newest = self.records[-1].step if self.records else 0
        return tuple(
            Answer(
                instrument, tuple(_with_series(pairs, newest) for (look, _), pairs in series.items() if look == name)
            )
            for name, instrument in spent.items()
            if any(look == name for look, _ in series)
        )

    def _skipped(self) -> tuple[Skipped, ...]:
        """What the last look could not read, and earlier trouble with the loss."""
        if not self.records:
            return ()
        last = [
            Skipped(*note.split(": ", 1)) if ": " in note else Skipped("loss", note) for note in self.records[-1].notes
        ]
        bad = [note for record in self.records[:-1] for note in record.notes if "not finite at step" in note]
        return (*last, *(Skipped("loss", note) for note in bad[:3]))

    def _phases(self) -> list[tuple[int, str, str]]:
        """Where the phase changed: step, name and reason; the last entry is the present one."""
        found: list[tuple[int, str, str]] = []
        for record in self.records:
            if found and found[-1][1] == record.phase:
                found[-1] = (found[-1][0], record.phase, record.reason)
            else:
                found.append((record.step, record.phase, record.reason))
        return found

    def _facts(self) -> dict[str, str]:
        from theodolite import __version__

        parameters = sum(p.numel() for p in self.model.parameters())
        facts = {
            "parameters": f"{parameters:,}",
            "probe": f"first batch {self.subject.data.first().shapes()}",
            "looks": f"{len(self.records)}, level {self.level}, every {self.every}",
        }
        if self.records and math.isfinite(self.overhead):
            each = self._watching / len(self.records)
            facts["overhead"] = f"{100 * self.overhead:.3g} % of training time; {each:.3g} s a look"
        last = self.records[-1] if self.records else None
        if last is not None and last.lr:
            facts["learning rate"] = f"{last.lr:g}" + (f", momentum {last.momentum:g}" if last.momentum else "")
        return {**facts, "made with": f"theodolite {__version__}, torch {torch.__version__}"}


def _check(every: Any, level: Any, budget: float | None) -> None:
    if every != "auto" and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
        raise ValueError(f"expected a number of steps from 1 on, or 'auto', got every={every!r}")
    if level not in LEVELS:
        raise ValueError(f"expected a level cheap, standard or full, got {level!r}")
    if budget is not None and not 0 < budget < math.inf:
        raise ValueError(f"expected a share of training time such as 0.05, got budget={budget!r}")


def _history(records: Sequence[Record]) -> list[Moment]:
    """What decides the phase, of the looks that could read the loss."""
    return [
        Moment(
            r.step,
            r.facts["loss"],
            r.facts.get("sharpness"),
            r.facts.get("sharpness_error", 0.0),
            r.lr,
            r.momentum,
            _known(r.facts.get("alive")),
            _known(r.facts.get("drift")),
        )
        for r in records
        if "loss" in r.facts
    ]


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _trouble(scene: Scene, step: int) -> str:
    """In words, if loss or gradient are not finite: nothing else is then worth reading."""
    if "loss" not in scene.facts:
        return f"the loss could not be read at step {step}"
    if not math.isfinite(scene.facts["loss"]):
        return f"loss is not finite at step {step}"
    return "" if math.isfinite(scene.slope.norm) else f"gradient is not finite at step {step}"


def _with_series(pairs: Sequence[tuple[Record, Reading]], newest: int) -> Reading:
    thin = [
        pairs[place * (len(pairs) - 1) // (min(DRAWN, len(pairs)) - 1 or 1)] for place in range(min(DRAWN, len(pairs)))
    ]
    last, seen = pairs[-1][1], pairs[-1][0].step
    late = f"Last read at step {seen}, not since. " if seen != newest else ""
    bands = [reading.expected for _, reading in thin]
    told = any(band is not None for band in bands)
    values = [reading.measured for _, reading in thin if math.isfinite(reading.measured)]
    plain_edge = last.quantity == SHARPNESS and any(record.lr for record, _ in thin)
    series = Series(
        x=tuple(float(record.step) for record, _ in thin),
        measured=tuple(reading.measured for _, reading in thin),
        stderr=tuple(reading.stderr for _, reading in thin),
        low=tuple(band.low if band else math.inf for band in bands) if told else (),
        high=tuple(band.high if band else -math.inf for band in bands) if told else (),
        x_label="step",
        y_label=last.quantity,
        log="y" if values and min(values) > 0 and max(values) > 100 * min(values) else "",
        line=tuple(2 / record.lr if record.lr else math.nan for record, _ in thin) if plain_edge else (),
        line_label="2/lr" if plain_edge else "",
    )
    return Reading(
        quantity=last.quantity,
        measured=last.measured,
        stderr=last.stderr,
        expected=last.expected,
        where=last.where,
        meaning=late + last.meaning,
        series=series if len(values) > 1 else None,
    )


def _write_scalars(writer: Any, record: Record) -> None:
    for look, reading in record.readings:
        tag = f"theodolite/{look}/{'-'.join(reading.quantity.replace(',', '').replace('/', ' over ').split())}"
        writer.add_scalar(tag, reading.measured, record.step)
