"""What a watch keeps beside its looks: the hooks on training, what was told of it, and where it is told."""

from __future__ import annotations

import contextlib
import math
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from theodolite.core.ailment import Finding, Severity
from theodolite.core.checks import MissingPackageError
from theodolite.core.state import untouched
from theodolite.io.files import write_atomically
from theodolite.measure.dynamics import bare_optimizer, parameters_left_out
from theodolite.measure.dynamics._silent_facts import unregistered
from theodolite.verbs.diagnosing import alarms_of
from theodolite.verbs.watching.alarms import LOG, Alarms, Listener
from theodolite.verbs.watching.layers import stays
from theodolite.verbs.watching.records import Record
from theodolite.verbs.watching.training_hooks.gradient_noise import MicroBatches, RankNoise
from theodolite.verbs.watching.training_hooks.harmless_hooks import harmless
from theodolite.verbs.watching.training_hooks.loss_between_looks import LossBetweenLooks, TrainingLosses
from theodolite.verbs.watching.training_hooks.optimizer_events import OptimizerEvents
from theodolite.verbs.watching.training_hooks.sharded import Gathered
from theodolite.verbs.watching.training_hooks.silent_errors import SilentErrors, shared_store
from theodolite.verbs.watching.training_hooks.step_trace import StepTrace
from theodolite.verbs.watching.training_hooks.training import (
    LastStep,
    Training,
    TrainingPrecision,
    autocast_now,
    in_precision,
    is_silent,
    quiet_backends,
)
from theodolite.verbs.watching.training_hooks.training_batches import TrainingBatches
from theodolite.verbs.watching.watched_run import STEPS, TRIED, odd_batch, run_of, tried_step
from theodolite.verbs.watching.writers import scalar_writer, write_scalars

if TYPE_CHECKING:
    from theodolite.verbs.watching.watch import Watch

PAGES = 50
"""A page is written again after so many times what it took: no more than 2 % of the time."""
RISING = ("step-too-large", "overfits", "loss-stalls", "loss-spikes")
"""What the way of a loss tells that is trained on alone."""

Findings = tuple[Finding, ...]
StopOn = Severity
FindingListener = Listener


class Attachments:
    """Hooks on the optimizer and the model of a watch, its alarms, its writer and its page; silent on all processes but one."""

    def __init__(
        self,
        model: nn.Module,
        outer: nn.Module,
        optimizer: Any,
        autocast: torch.dtype | None,
        gathered: Gathered | None = None,
    ) -> None:
        self.model, self.silent, self.gathered = model, is_silent(), gathered
        self.optimizer: torch.optim.Optimizer | None = bare_optimizer(optimizer)
        self.events = None if self.optimizer is None else OptimizerEvents(self.optimizer)
        self.last = None if self.optimizer is None or self.silent else LastStep(model, self.optimizer)
        self.micro: MicroBatches | None = None
        if self.optimizer is not None and self.events is not None and not self.silent:
            self.micro = MicroBatches(model, self.optimizer, self.events)
        self.ranks: RankNoise | None = None
        store = shared_store() if self.optimizer is not None and gathered is None else None
        if self.optimizer is not None and store is not None:
            self.ranks = RankNoise(model, self.optimizer, store)
        self.precision = TrainingPrecision(outer, autocast)
        self.batches: TrainingBatches | None = None
        self.alarms, self.between = Alarms(), LossBetweenLooks()
        moves = None if self.silent or gathered is not None else self.optimizer  # a copy does not move at every step
        self.losses, self.trace = TrainingLosses(), StepTrace(model, moves)
        self.errors = SilentErrors(model, self.optimizer, _called_parts(model), stands_in=gathered is not None)
        if not isinstance(getattr(model, "_call", None), tuple) and not self.silent:
            self.errors.listen(outer)
        self.writer: Any = None
        self.pages: tuple[Path, ...] = ()
        self.shown: Any = None  # the output of a notebook that shows the run
        self._page_due = -math.inf
        if gathered is not None and self.last is not None:
            self.last.near = False  # it is told what was gathered

    def tell(self, on_finding: Listener | None, stop_on: Severity | None, writer: Any, pages: tuple[Path, ...]) -> None:
        """Where findings, numbers and the page go."""
        self.alarms = Alarms(on_finding, stop_on)
        self.writer = None if self.silent else scalar_writer(writer)
        self.pages = () if self.silent else pages

    def follow(self, optimizer: torch.optim.Optimizer) -> None:
        """Go on with another optimizer of the same parameters: every hook on the one before is one on it."""
        assert self.optimizer is not None and self.events is not None
        kinds = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
        hooks = [(getattr(self.optimizer, kind), getattr(optimizer, kind)) for kind in kinds]
        for part in filter(None, (self.events, self.last, self.micro, self.ranks, self.errors, self.trace)):
            held = [value if isinstance(value, list) else [value] for value in vars(part).values()]
            for handle in (one for own in held for one in own if isinstance(one, RemovableHandle)):
                for before, after in hooks:
                    if handle.id in before:
                        after[handle.id] = before.pop(handle.id)
                        handle.hooks_dict_ref = weakref.ref(after)
        self.optimizer = optimizer
        for other in (self.events, self.errors, self.trace):
            other.follow(optimizer)

    def training(self) -> Training:
        """What a look knows of the training around it."""
        before = {} if self.last is None else self.last.before
        noise = self.ranks.noise if self.ranks is not None else None if self.micro is None else self.micro.noise
        return Training(self.optimizer, before, self.autocast, noise, 0 if self.events is None else self.events.steps)

    def between_looks(self) -> contextlib.AbstractContextManager[None]:
        """As `looking`, for what needs nothing of the training around it."""
        return self.looking(Training(precision=self.autocast))

    @property
    def autocast(self) -> torch.dtype | None:
        """The precision that training runs in; None as it stands."""
        return autocast_now(self.model) or self.precision.dtype

    def as_trained(self) -> contextlib.AbstractContextManager[Any]:
        """In the precision of training."""
        return in_precision(self.model, self.autocast)

    @contextlib.contextmanager
    def looking(self, training: Training) -> Iterator[None]:
        """The model, its buffers, gradients and modes and all random states are as before when this ends."""
        precision = in_precision(self.model, training.precision)
        with self._aside(), untouched(self.model), torch.enable_grad(), precision, quiet_backends():
            yield

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """What is run in here is no training of the user's."""
        before, self.errors.idle = self.errors.idle, True
        try:
            with contextlib.nullcontext() if self.batches is None else self.batches.aside():
                yield
        finally:
            self.errors.idle = before

    @contextlib.contextmanager
    def judging(self) -> Iterator[None]:
        """In the precision of training; trials on copies are no training of the user's."""
        with self._aside(), self.as_trained(), quiet_backends():
            yield

    def expect(self, near: bool) -> None:
        """Whether a look may come after the next step, whose weights before are to be kept then."""
        if self.gathered is not None:
            self.gathered.near = near
        elif self.last is not None:
            self.last.near = near
        if self.micro is not None:
            self.micro.expect(near)

    def refresh(self) -> None:
        """What is spread over processes, gathered for a look: a call of all of them."""
        if self.gathered is not None:
            found = self.gathered.refresh()
            if self.last is not None:
                own = dict(self.model.named_parameters())
                self.last.before = {name: found[id(p)] for name, p in own.items() if id(p) in found}
                self.last.pulled.update(self.last.before)

    def release(self) -> None:
        """The weights before the last step are not needed any more."""
        if self.last is not None:
            self.last.release()
        if self.micro is not None:
            self.micro.release()

    def lines(self, watch: Watch, origin: Mapping[str, Tensor]) -> tuple[str, ...]:
        """The findings of the looks so far, those told that are new or got worse.

        A step newly found too large has its remedy tried on small copies.
        """
        return tuple(self.alarms.new_lines(watch.records[-1].step, self._findings(watch, origin) or ()))

    @harmless
    def _findings(self, watch: Watch, origin: Mapping[str, Tensor]) -> Sequence[Finding]:
        left_out: dict[str, tuple[str, ...]] = {}
        if self.optimizer is not None and self.events is not None and self.events.steps:
            pulled = set() if self.last is None else self.last.pulled
            missing, without = parameters_left_out(self.model, self.optimizer, pulled=pulled)
            # another optimizer may hold them: only what stays is named
            kept = tuple(n for n in missing if stays(self.model, origin, n))
            held = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
            left_out = {"in no group": (*kept, *unregistered(self.model, held)), "without a gradient": tuple(without)}
        with self.between_looks():
            self.trace.settle(partial(odd_batch, watch))
        found = list(alarms_of(run_of(watch, left_out, self.silent_facts(watch))))
        if watch.plays and math.isfinite(watch.records[-1].facts.get("step_loss", math.nan)):
            found = [finding for finding in found if finding.name not in RISING]
        for place, finding in enumerate(found):
            new = finding.name == "step-too-large" and finding.name not in self.alarms.standing
            if new and watch.affords_trial(TRIED * STEPS):
                found[place] = tried_step(watch, origin, finding)
        return found

    def silent_facts(self, watch: Watch) -> dict[str, tuple[str, ...]]:
        """Exact facts of the steps so far that no training should show."""
        seen = watch.data if isinstance(watch.data, list) else [] if self.batches is None else self.batches.kept
        lrs = [lr for _, lr in watch.rates if lr]
        probe = watch.looked_at.data.first().on(self.model)
        of_steps = self.errors.facts(seen, lrs, watch.data, probe) or {}
        return of_steps | (self.trace.facts() or {})

    def publish(self, watch: Watch, record: Record) -> None:
        """The numbers to the writer, and the page anew."""
        if self.writer is not None:
            try:
                write_scalars(self.writer, record)
            except Exception as error:  # a service that is gone or refuses a number does not end a training
                LOG.warning("numbers are no longer written: %s", " ".join(str(error).split()))
                self.writer = None
        began = time.perf_counter()
        if (self.pages or self.shown) and (watch.measures_all or began >= self._page_due):
            self.redraw(watch)
            if self.pages:
                from theodolite.verbs.watching.history import live_page_of

                page = live_page_of(watch)
                for place in self.pages:
                    write_atomically(place, page)
            ended = time.perf_counter()
            self._page_due = ended + PAGES * (ended - began)

    def show(self, watch: Watch) -> None:
        """The run below the cell of a notebook that is running."""
        try:
            from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise MissingPackageError("expected a notebook, got no IPython; page_at= writes a page instead") from error
        from theodolite.verbs.watching.history import live_fragment_of

        if not self.silent:
            self.shown = display(HTML(live_fragment_of(watch)), display_id=True)

    def redraw(self, watch: Watch) -> None:
        """What a notebook shows of the run, as it is now."""
        if self.shown is None:
            return
        from IPython.display import HTML

        from theodolite.verbs.watching.history import live_fragment_of

        try:
            self.shown.update(HTML(live_fragment_of(watch)))
        except Exception as error:  # a notebook that is closed does not end a training
            LOG.warning("the run is no longer shown: %s", " ".join(str(error).split()))
            self.shown = None

    def close(self) -> None:
        """Take away every hook."""
        for seen in (
            self.events,
            self.last,
            self.micro,
            self.precision,
            self.batches,
            self.errors,
            self.gathered,
            self.trace,
            self.ranks,
        ):
            if seen is not None:
                seen.remove()


def _called_parts(model: nn.Module) -> tuple[nn.Module, ...]:
    """The modules that a script calls, where the model only stands for them."""
    inner = getattr(model, "parts", None)
    if isinstance(inner, nn.ModuleList):
        return tuple(inner)
    called: Any = getattr(model, "model", None)
    return (called,) if isinstance(getattr(model, "_call", None), tuple) else ()
