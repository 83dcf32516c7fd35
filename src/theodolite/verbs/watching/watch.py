"""Looks repeated while a model trains: each a record of readings, on disk when taken; the training is left as it was."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from theodolite.core.checks import InputError, check_optimizer
from theodolite.core.reading_table import COLUMNS
from theodolite.evidence.batches import has_places, price
from theodolite.evidence.thresholds import A_FEW
from theodolite.measure import normalizes_batches
from theodolite.measure.dynamics import bare_optimizer
from theodolite.theory.dynamics import TrainingPhase, training_phase
from theodolite.verbs._presented import PresentableAnswers, Sheet
from theodolite.verbs.watching.alarms import LOG
from theodolite.verbs.watching.attachments import Attachments, FindingListener, Findings, StopOn
from theodolite.verbs.watching.history import answers_of, facts_of, history_of, skipped_of
from theodolite.verbs.watching.look_context import LEVELS, Batching, Carried, Level
from theodolite.verbs.watching.look_reader import LookReader
from theodolite.verbs.watching.records import Record, StoredRecords
from theodolite.verbs.watching.starts import kept_probe, starting_weights, wait_for, watched_model, watched_subject
from theodolite.verbs.watching.thinning import FEWEST, SAMPLES, SPREAD, LookAccount, LookPrices
from theodolite.verbs.watching.training_hooks.optimizer_events import optimizer_lr, optimizer_momentum
from theodolite.verbs.watching.training_hooks.sharded import Gathered, is_sharded
from theodolite.verbs.watching.training_hooks.training_batches import TrainingBatches
from theodolite.verbs.watching.watched_run import held_out_batches, subject_of_run, thinned_batches, thinned_subject

if TYPE_CHECKING:
    from theodolite.core.subject import Subject
    from theodolite.evidence.work import Price
    from theodolite.io.batches import Batch
    from theodolite.report.opening import Opening
    from theodolite.theory.dynamics.stationarity import Sampler
    from theodolite.verbs.diagnosis import Diagnosis
    from theodolite.verbs.watching.training_hooks.silent_errors import SilentErrors


def _assumed_loss(output: Any, target: Any) -> Tensor:
    """Where no loss was given."""
    return cross_entropy(output, target)


@dataclass(eq=False, repr=False)
class Watch(PresentableAnswers):
    """Measures a model while it trains: call ``watch(step)`` after each step; it returns at once unless a look is due.

    ``probe`` is a batch with its target (or a few batches), the same at every look. Readings of the function are taken in
    evaluation mode, readings of the step with the statistics of the batch. ``level``: ``cheap`` measures loss,
    gradient, distance from the start and the last step; ``standard`` also sharpness, tangent kernel and collapse;
    ``full`` also the top Hessian subspace, gradient noise and stationarity, for which ``batch_size``, ``samples`` and
    ``sampler`` say how training draws batches. ``loss`` is the one you train on; without it cross-entropy is assumed,
    and said.

    ``every`` is a number of steps, or ``"auto"``: as often as ``budget`` allows. ``budget`` is the share of the work of
    training that all looks together may take, 1 % at cheap and 5 % at standard unless you say otherwise: work is counted in
    passes through the model, so that the same run is measured in the same way on any machine. Within it a look reads as many
    samples of the probe and of the validation data as a batch of training has, expensive readings are taken at some looks
    only, and a look that cannot be afforded is left out. With ``budget=math.inf``, and by `look`, everything is measured.

    With ``out`` each record is written to that folder at once, `live.html` there shows the run so far, and a run that
    starts again with the same folder continues it, compared with its first weights. For the same looks as without the
    interruption, call the watch after the optimizer's step and before its state is saved. ``writer`` is a TensorBoard
    writer, a wandb or aim run, mlflow, or any function of numbers and a step; ``page_at`` is another place for the
    page, which is rewritten at every look and reloads itself. In a notebook `show` puts the run below a cell.

    With ``optimizer`` its learning rate, momentum, decay, groups and state are read at each look, and `diagnosis` says what
    is wrong and what to change. ``validation`` is held-out data, whose loss and accuracy each look records; ``data`` is
    the training data, of which the watch otherwise keeps some batches as they pass through the model. Each new finding
    is one line in the log of theodolite and a call of ``on_finding(step, finding)``; ``stop_on="critical"`` raises
    `Stopped`. ``autocast`` is the precision of training, detected at the first forward pass.

    A model that is sharded over processes (``fully_shard``) is watched by calls on all of them, at the same steps; the
    first one measures, on a whole copy: ``gathered``, which is made if it is not given.
    """

    model: nn.Module
    _: KW_ONLY
    probe: Any
    optimizer: torch.optim.Optimizer | None = None
    validation: Any = None
    data: Any = None
    loss: Callable[[Any, Any], Tensor] = _assumed_loss
    every: int | Literal["auto"] = 100
    level: Level = "standard"
    out: str | Path | None = None
    writer: Any = None
    budget: float | None = None
    batch_size: int | None = None
    samples: int | None = None
    sampler: Sampler = "without replacement"
    name: str = ""
    page_at: str | Path | None = None
    on_finding: FindingListener | None = None
    stop_on: StopOn | None = None
    autocast: torch.dtype | None = None
    gathered: Gathered | None = None
    records: list[Record] = field(default_factory=list, init=False)
    columns: ClassVar[tuple[str, ...]] = ("step", "lr", "momentum", "phase", "instrument", *COLUMNS)
    kind: ClassVar[str] = "watch"

    def __post_init__(self) -> None:
        _check(self.every, self.level, self.budget)
        check_optimizer(bare_optimizer(self.optimizer))
        outer, self.model = self.model, watched_model(self.model)
        if self.gathered is None and is_sharded(self.model):
            self.gathered = Gathered(self.model, bare_optimizer(self.optimizer))
            self.model, self.optimizer = self.gathered.model, self.gathered.optimizer
        self._attached = Attachments(self.model, outer, self.optimizer, self.autocast, self.gathered)
        self._attached.tell(self.on_finding, self.stop_on, self.writer, self._pages())
        self.optimizer, self.events = self._attached.optimizer, self._attached.events
        if self.loss is _assumed_loss:
            self.loss = cross_entropy
            if not self._attached.silent:
                LOG.warning("no loss was given: the watch assumes cross_entropy; pass loss= with the one you train on")
        self.subject = watched_subject(self.model, self.probe, self.loss, self.name)
        self.loss = self.subject.loss or self.loss
        if not self.subject.has("loss"):
            raise InputError("expected a probe with a target for the loss, got only inputs; pass (inputs, target)")
        if not self._attached.silent:
            self._attached.batches = TrainingBatches(self.model, self.loss, self._attached.trace.note)
        folder = None if self.out is None or self._attached.silent else Path(self.out)
        self._stored = StoredRecords(folder)
        self._carried = Carried(starting_weights(self.model, folder))
        self.records = self._stored.records()
        last = self.records[-1] if self.records else None
        self._watching, self._training = (last.watching, last.training) if last else (0.0, 0.0)
        self._since: float | None = None  # when the last call to a look ended
        self._latest = 0.0  # when the last call came
        self._seen: int | None = None  # the last step told
        self._known: Record | None = None  # what a run before this one saw at the step where it is taken up
        self._diagnosed: tuple[Any, Diagnosis] | None = None
        self._next = -math.inf if last is None or self.every == "auto" else last.step + self.every
        self._reader = LookReader(
            self._attached,
            self._carried,
            self.level,
            Batching(self.batch_size, self.samples, self.sampler),
            LookAccount.of(self.level, self.budget),
        )
        self._held_out: Sequence[Batch] = held_out_batches(kept_probe(self.validation, self.model), self.model)
        self._looked: Subject | None = None  # the subject with those samples of the probe that looks read
        self._rates: dict[int, float] = {record.step: record.lr or 0.0 for record in self.records}
        self._note_at = -math.inf
        self._costs: dict[torch.dtype | None, Price] = {}  # of a pass, by the precision of training
        if self.gathered is not None:
            self.gathered.settle()
        self.plays = False  # against another network: a loss that rises is no sign of trouble then
        self._steps = 0

    def __call__(self, step: int, *, lr: float | None = None, momentum: float = 0.0) -> Record | None:
        """Take a look if one is due; ``lr`` and ``momentum`` are those of the optimizer now, where the watch was not given it."""
        if self.gathered is not None:
            return self._together(step, lr, momentum)
        if self._attached.silent:
            return None
        if self._seen is None or step < self._seen:
            self._go_back_to(step)
        stride = 1 if self._seen is None else max(1, step - self._seen)
        self._steps += 0 if self._seen is None else max(0, step - self._seen)
        self._seen, self._latest = step, time.perf_counter()
        self._attached.trace.note_step(step)
        self.silent_errors.after_step()
        if step >= self._note_at:
            self._note_rate(step)
        due = step >= self._next or (self._attached.trace.rises and self._is_worth_a_look())
        record = self._look(step, lr, momentum, whole=False) if due else None
        if not due and self._attached.between.due(step):
            self._read_between(step)
        self._attached.expect(step + stride >= self._next)
        return record

    def follow(self, optimizer: torch.optim.Optimizer) -> None:
        """Go on with another optimizer of the same parameters, made in place of the one before."""
        self._attached.follow(optimizer)
        if type(optimizer) is not type(self.optimizer):
            self._rates.clear()  # step sizes of two kinds are not one schedule
        self.optimizer = optimizer

    def look(self, step: int, *, lr: float | None = None, momentum: float = 0.0, whole: bool = True) -> Record:
        """Take a look now, due or not, as at the end of training; a ``whole`` one whatever it costs."""
        self._attached.refresh()
        return self._look(step, lr, momentum, whole=whole)

    def _together(self, step: int, lr: float | None, momentum: float) -> Record | None:
        """A look where all processes know that one is due: all gather, the first one reads, and tells when the next one is."""
        assert self.gathered is not None
        stride = 1 if self._seen is None else max(1, step - self._seen)
        self._steps += 0 if self._seen is None else max(0, step - self._seen)
        self._latest = time.perf_counter()
        record, after = None, math.inf  # what fails on the first process is the last look of all
        if step >= self._next:
            self._attached.refresh()
            try:
                if self.gathered.first:
                    record = self._look(step, lr, momentum, whole=False)
                    after = self._next
            finally:
                self._next = self.gathered.agreed(after)
        self._seen = step
        self._attached.expect(step + stride >= self._next)
        return record

    def _look(self, step: int, lr: float | None, momentum: float, *, whole: bool) -> Record:
        if self._attached.silent:
            return Record(step)
        if self.optimizer is not None:
            lr, momentum = optimizer_lr(self.optimizer), optimizer_momentum(self.optimizer)
        if lr is not None and not lr > 0:
            lr = None  # a schedule may begin or end at zero: there is no edge then
        if self._seen is None or (self.records and step <= self.records[-1].step):
            self._go_back_to(step)
        self._seen = step
        wait_for(self.model)
        started = self._latest = time.perf_counter()
        self._training = self.training_seconds
        self._rates[step] = lr or 0.0
        subject, held_out = self._samples()
        prices, a_step = self._prices(subject, held_out)
        found = self._reader.look(
            subject.stepping(lr, momentum),
            held_out,
            self.records,
            step,
            whole=whole,
            prices=prices,
            trained=self._steps * a_step,
        )
        self._attached.release()
        facts = found.facts | self._attached.between.facts() | self._attached.losses.facts()
        bare = self._as_before(Record(step, lr, momentum, tuple(found.readings), tuple(found.notes), facts=facts))
        history = history_of([*self.records, bare])
        phase = training_phase(history)
        self._attached.between.follow(history)
        if not self.records:
            self._attached.trace.start = facts.get("step_loss", math.inf)
        self.records.append(replace(bare, phase=phase.name, reason=phase.reason))
        alarms = self._attached.lines(self, self._carried.origin)
        seconds = time.perf_counter() - started
        record = self.records[-1] = replace(
            self.records[-1], alarms=alarms, seconds=seconds, watching=self._watching + seconds, training=self._training
        )
        self._stored.add(record)
        self._attached.publish(self, record)
        self._next = step + self._pause(prices, a_step)
        self._since = self._latest = time.perf_counter()
        self._watching += self._since - started
        self._attached.alarms.stop(step)
        return record

    def _samples(self) -> tuple[Subject, Sequence[Batch]]:
        """The samples of the probe and of the validation data that looks read: all, or as many as training has in a batch."""
        if self._looked is None:
            self._looked = self.subject
            if not self._reader.account.is_endless:
                few = max(FEWEST, self.seen_batch_size or SAMPLES)
                if has_places(self.subject.data.first()):  # a few sequences are many answers
                    few = few // A_FEW
                self._looked, self._held_out = thinned_subject(self.subject, few), thinned_batches(self._held_out, few)
        return self._looked, self._held_out

    @property
    def looked_at(self) -> Subject:
        """The subject with the samples of the probe that looks read."""
        return self._samples()[0]

    def affords_trial(self, steps: int) -> bool:
        """Whether so many steps on copies fit into what looks may take; they are paid then, as a whole look is."""
        account, a_step = self._reader.account, self._prices(*self._samples())[1]
        if account.is_endless:
            return True
        afforded = account.left("whole", self._steps * a_step) >= steps * a_step
        account.spent["whole"] += steps * a_step if afforded else 0.0
        return afforded

    @property
    def measures_all(self) -> bool:
        """Whether every look is whole, whatever it costs."""
        return self._reader.account.is_endless

    @property
    def seen_batch_size(self) -> int | None:
        """Samples of a batch of training, as told or seen; None where neither."""
        seen = self.training_batches
        return self.batch_size or (None if seen is None else seen.batch_size)

    def _prices(self, subject: Subject, held_out: Sequence[Batch]) -> tuple[LookPrices, float]:
        """What a look and a step of training cost, in nominal seconds."""
        dtype, samples = self._attached.autocast, sum(map(len, subject.data))
        if dtype not in self._costs:  # it is known from the first pass of training on
            self.subject.seen.pop("price", None)
            with self._attached.as_trained():
                self._costs[dtype] = price(self.subject)
        cost = self._costs[dtype]
        tensors = sum(1 for _ in self.model.parameters())
        passes = 1 if self.events is None else max(1, self.events.passes)
        a_step = passes * cost.step(self.seen_batch_size or samples)
        twice = normalizes_batches(self.model)
        return LookPrices.of(cost, tensors, samples, sum(map(len, held_out)), normalized=twice), a_step

    def _pause(self, prices: LookPrices, a_step: float) -> int:
        """Steps until the next look: as many as were told, and as many as it takes to earn one."""
        until = self._reader.account.steps_until(prices.loss, self._steps * a_step, a_step)
        if self.every == "auto":
            return max(1, until, 0 if self._reader.account.is_endless else int(SPREAD * self._steps))
        return self.every * max(1, math.ceil(until / self.every))

    def _is_worth_a_look(self) -> bool:
        """Whether losses of training that have risen are looked at before a look is due; once a block of steps."""
        self._attached.trace.rises = False
        account, (prices, a_step) = self._reader.account, self._prices(*self._samples())
        return not account.is_endless and account.allows_look(prices, self._steps * a_step)

    def _note_rate(self, step: int) -> None:
        """Note the learning rate, at looks that are left out too: trials go through the schedule of the run."""
        if self.optimizer is not None:
            self._rates[step] = optimizer_lr(self.optimizer)
        self._note_at = step + (self.every if self.every != "auto" else max(1, int(SPREAD * self._steps)))

    @property
    def rates(self) -> tuple[tuple[int, float], ...]:
        """The learning rate at steps of the run, 0 where it was 0 or is not known."""
        return tuple(sorted(self._rates.items()))

    def _pages(self) -> tuple[Path, ...]:
        """Where the run so far is shown: in its folder, and where its user asked for."""
        inside = () if self.out is None else (Path(self.out) / "live.html",)
        return inside if self.page_at is None else (*inside, Path(self.page_at))

    @property
    def findings(self) -> Findings:
        """What the looks so far say is wrong, worst first: what was told while it ran. `diagnosis` looks for more, on copies."""
        return tuple(self._attached.alarms.standing.values())

    def note_loss(self, value: Tensor) -> None:
        """The value that a backward pass was called on, where the loop tells it: rises between looks are seen then."""
        self._attached.losses.note(value.detach())
        self._attached.trace.note(value)

    @property
    def silent_errors(self) -> SilentErrors:
        """What is seen of each step."""
        return self._attached.errors

    @property
    def silent(self) -> dict[str, tuple[str, ...]]:
        """Exact facts of the steps so far that no training should show, by name."""
        return self._attached.silent_facts(self)

    @property
    def training_batches(self) -> TrainingBatches | None:
        """What was seen of the batches that training puts through the model."""
        return self._attached.batches

    def close(self) -> None:
        """Take away every hook; what was read stays."""
        self._attached.close()

    @property
    def phase(self) -> TrainingPhase:
        """Lazy, stable, catapult, edge, divergent, dead or undecided, with the numbers that decided."""
        return training_phase(history_of(self.records))

    @property
    def diagnosis(self) -> Diagnosis:
        """What is wrong with the run so far, worst first, each with what to type; remedies are tried on copies before."""
        return self._known_diagnosis or self.diagnosed()

    @property
    def told(self) -> Diagnosis:
        """The diagnosis where it was made of the run as it is now; else what the looks have told, for which nothing is tried."""
        from theodolite.verbs.diagnosis import SEEN, Diagnosis

        return self._known_diagnosis or Diagnosis(self.subject.name, self.findings, (SEEN,))

    @property
    def _known_diagnosis(self) -> Diagnosis | None:
        """It is expensive: made once for each state of the run."""
        now = (len(self.records), self._seen)
        return self._diagnosed[1] if self._diagnosed is not None and self._diagnosed[0] == now else None

    def diagnosed(
        self,
        budget: float = 25.0,
        *,
        on_subject: Callable[[Subject], Any] | None = None,
        on_diagnosis: Callable[[Diagnosis], Diagnosis] | None = None,
    ) -> Diagnosis:
        """The diagnosis made within so many nominal seconds of work; with 0 it is what the looks themselves have told.

        ``on_subject`` is called with what is about to be judged, so that it can show how far it is, or end it;
        ``on_diagnosis`` gives the diagnosis as it is to be shown.
        """
        from theodolite.verbs.diagnosis import SEEN, Diagnosis, diagnosis_of

        if budget > 0:
            with self._attached.judging():
                subject = subject_of_run(self, self._carried.origin)
                if on_subject is not None:
                    on_subject(subject)
                found = diagnosis_of(subject, self.subject.name, budget=budget)
        else:
            found = Diagnosis(self.subject.name, self.findings, (SEEN,))
        found = found if on_diagnosis is None else on_diagnosis(found)
        self._diagnosed = (len(self.records), self._seen), found
        self._attached.redraw(self)
        return found

    def show(self) -> None:
        """In a notebook: show the run below this cell, its curves and findings, and update them while it trains."""
        self._attached.show(self)

    @property
    def overhead(self) -> float:
        """Seconds spent on looks over seconds of training between the first call and the last; not a number before."""
        training = self.training_seconds
        return self._watching / training if training > 0 else math.nan

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a reading, with its step."""
        return [row for record in self.records for row in record.rows()]

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        phase = self.phase
        return {
            "subject": self.subject.name,
            "level": self.level,
            "overhead": self.overhead,
            "phase": {"name": phase.name, "reason": phase.reason},
            "notes": [{"step": r.step, "notes": list(r.notes)} for r in self.records if r.notes],
            "alarms": [line for r in self.records for line in r.alarms],
            "diagnosis": None if self._diagnosed is None else self._diagnosed[1].document(),
            "readings": self.rows(),
        }

    def sheet(self) -> Sheet:
        """The last look, each reading with all its earlier ones as a series."""
        return Sheet(self.subject.name, answers_of(self.records), skipped_of(self.records), facts_of(self))

    def page(self) -> str:
        """One page with every series over the steps."""
        from theodolite.verbs.watching.history import page_of

        return page_of(self)

    def opening(self) -> Opening:
        """The diagnosis of the run, and its loss on the probe and on held-out data over the steps."""
        from theodolite.verbs.watching.history import opening_of

        return opening_of(self)

    def __str__(self) -> str:
        from theodolite.report.survey_text import survey_summary
        from theodolite.report.text import as_text

        lines = [f"{f.severity.capitalize()}: {f.says} Fix: {f.remedy}" for f in self.told.findings]
        if not lines and self._known_diagnosis is not None:
            lines = [self.told.headline]
        lines = lines or [f"No alarm in {len(self.records)} measurements; watch.diagnosis checks more."]
        sheet = self.sheet()
        readings = as_text(survey_summary(sheet.answers, sheet.skipped), width=120)
        return "\n".join([*lines, f"{self.phase.name.capitalize()}: {self.phase.reason}", "", readings])

    def __repr__(self) -> str:
        last = f", last at step {self.records[-1].step}" if self.records else ""
        return (
            f"Watch({self.subject.name}, level={self.level!r}, every={self.every!r}: {len(self.records)} records{last})"
        )

    def _read_between(self, step: int) -> None:
        """Read the loss alone: what that costs is time of looks, not of training."""
        started = time.perf_counter()
        with self._attached.between_looks():
            self._attached.between.read(step, self._samples()[0])
        spent = time.perf_counter() - started
        self._watching += spent
        self._latest += spent
        self._since = None if self._since is None else self._since + spent

    def _as_before(self, found: Record) -> Record:
        """The look on disk where a run is taken up at its very step with the same loss: it had seen the step before, too."""
        known, self._known = self._known, None
        if known is None or known.step != found.step or known.facts.get("loss") != found.facts.get("loss"):
            return found
        return replace(found, readings=known.readings, notes=known.notes, facts=known.facts)

    @property
    def training_seconds(self) -> float:
        """Seconds of training between the first call and the last, looks left out."""
        return self._training + (0.0 if self._since is None else max(0.0, self._latest - self._since))

    def _go_back_to(self, step: int) -> None:
        """A run that is taken up at an earlier step does these again: later records give way."""
        kept = [record for record in self.records if record.step < step]
        if self._since is None:
            self._since = time.perf_counter()
        if self._seen is None:  # of the run before this one
            self._known = next((record for record in self.records if record.step == step), None)
        if len(kept) < len(self.records):
            self._stored.drop({record.step for record in self.records} - {record.step for record in kept})
            self.records[:] = kept
            self._carried.forget_window()
            self._attached.between.end()
            self._rates = {at: lr for at, lr in self._rates.items() if at < step}
            self._note_at = -math.inf
            self._next = kept[-1].step + self.every if kept and self.every != "auto" else -math.inf


def _check(every: Any, level: Any, budget: float | None) -> None:
    if every != "auto" and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
        raise InputError(f"expected a number of steps from 1 on, or 'auto', got every={every!r}")
    if level not in LEVELS:
        raise InputError(f"expected a level cheap, standard or full, got {level!r}")
    if budget is not None and not budget > 0:
        raise InputError(
            f"expected a share of training such as 0.05, or math.inf for complete measurements, got {budget!r}"
        )
