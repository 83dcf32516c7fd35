"""What the first steps of a script show, and the watch once they have.

Torch's own global hooks show which module is run and which optimizer steps; thin wrappers around the losses of
torch.nn.functional and around backward show what is compared with what. Once model, batch, loss and optimizer are known, only the
hooks of the optimizer are left. Where the loss cannot be called again, the values that backward was called on are watched alone.
"""

from __future__ import annotations

import functools
import json
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.core.run import Run
from theodolite.io.files import json_ready, write_atomically
from theodolite.report.diagnosis import SHOWN, remedy_verb
from theodolite.verbs.diagnosing import alarms_of
from theodolite.verbs.running.probes import LOSSES, SeenForward, SeenLoss, probe_of, seen_loss
from theodolite.verbs.watching.alarms import Alarms
from theodolite.verbs.watching.look_context import Level
from theodolite.verbs.watching.records import Record
from theodolite.verbs.watching.training import autocast_now, is_silent
from theodolite.verbs.watching.watch import Watch
from theodolite.verbs.watching.watched_run import moment_of

PATIENCE, KEPT, AVERAGED = 20, 4, 5
"""Steps after which the loss is taken for one that cannot be called again; calls of losses, and values of it, that are kept."""


def said(words: str) -> None:
    """One line on standard error; only the first of several processes speaks."""
    if not is_silent():
        print(f"theodolite: {words}", file=sys.stderr, flush=True)


def _forget(hook: int) -> None:
    """Take out what torch leaves of a global hook that was removed: a model compiled later would be warned of hooks."""
    left = getattr(torch.nn.modules.module, "_global_forward_hooks_with_kwargs", None)
    if left is not None:
        left.pop(hook, None)


@dataclass
class SeenOptimizer:
    """An optimizer that takes steps: how many so far, and the values that backward was called on before the last of them."""

    optimizer: Any
    size: int
    steps: int = 0
    values: list[Tensor] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


@dataclass
class Observer:
    """Sees a script train; ``watch`` is there once it is known what is trained."""

    out: Path
    every: int | Literal["auto"] = "auto"
    level: Level = "standard"
    watch: Watch | None = None
    steps: int = 0
    optimizer: Any = None
    _alarms: Alarms = field(default_factory=Alarms)
    _forward: SeenForward | None = None
    _losses: list[SeenLoss] = field(default_factory=list)
    _roots: list[Tensor] = field(default_factory=list)
    _values: list[Tensor] = field(default_factory=list)
    _seen: dict[int, SeenOptimizer] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    _undo: list[Callable[[], Any]] = field(default_factory=list)
    _searching: list[Callable[[], Any]] = field(default_factory=list)
    _looking: bool = False
    _compiled: bool = False

    def install(self) -> None:
        """Hooks and wrappers, all of which `remove` takes away."""
        from torch.nn.modules.module import register_module_forward_hook
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        hook = register_module_forward_hook(self._ran, with_kwargs=True)
        self._searching = [hook.remove, functools.partial(_forget, hook.id)]
        self._undo = [
            register_optimizer_step_pre_hook(self._steps).remove,
            register_optimizer_step_post_hook(self._stepped).remove,
        ]
        for name in LOSSES:
            whole = getattr(torch.nn.functional, name)
            setattr(torch.nn.functional, name, self._listening(whole))
            self._undo.append(functools.partial(setattr, torch.nn.functional, name, whole))
        backward: Any = torch.Tensor.backward

        @functools.wraps(backward)
        def seen(tensor: Tensor, *args: Any, **keywords: Any) -> Any:
            if not torch.compiler.is_compiling() and self.watch is None and tensor.numel() == 1:
                self._values = [*self._values, tensor.detach()][-AVERAGED:]
                self._roots = [*self._roots, tensor][-KEPT:] if self._searching else []
            return backward(tensor, *args, **keywords)

        setattr(torch.Tensor, "backward", seen)  # noqa: B010  a method that is put back
        self._undo.append(functools.partial(setattr, torch.Tensor, "backward", backward))

    def remove(self) -> None:
        """Look no longer."""
        for undo in (*self._searching, *self._undo):
            undo()
        self._searching, self._undo = [], []

    def end(self) -> None:
        """A last look, the page and the numbers."""
        self._looking = True
        if self.watch is None:
            self._end_without()
            return
        watch = self.watch
        if not is_silent():
            if not watch.records or watch.records[-1].step < self.steps:
                watch.look(self.steps)
            watch.html(self.out / "run.html")
            watch.json(self.out / "run.json")
            said(f"{watch.phase.name}: {watch.phase.reason}")
            said(f"{watch.diagnosis.headline} ({self.out / 'run.html'})")
            for finding in watch.diagnosis.findings[:SHOWN]:
                said(f"{finding.name}: {remedy_verb(finding.remedy)} {finding.remedy}")
        watch.close()

    def _end_without(self) -> None:
        found = sorted((seen for seen in self._seen.values() if seen.records), key=lambda seen: -seen.size)
        if not found:
            said("nothing was watched: no optimizer was seen to take steps on a loss")
            return
        told = {
            "steps": found[0].steps,
            "losses": [{"step": r.step, "loss": r.facts["loss"]} for r in found[0].records],
            "alarms": [line for seen in found for r in seen.records for line in r.alarms],
        }
        write_atomically(self.out / "run.json", json.dumps(json_ready(told), indent=2) + "\n")
        for seen in found:
            whose = "" if len(found) == 1 else f" of {type(seen.optimizer).__name__} on {seen.size:,} parameters"
            first, last = (seen.records[place].facts["loss"] for place in (0, -1))
            said(f"the loss{whose} went from {first:.4g} to {last:.4g}; no page")

    def _listening(self, whole: Any) -> Any:
        @functools.wraps(whole)
        def loss(*args: Any, **keywords: Any) -> Any:
            value = whole(*args, **keywords)
            if torch.compiler.is_compiling():  # a graph of the script's own is left as it is
                return value
            if self._searching and not self._looking and torch.is_grad_enabled() and isinstance(value, Tensor):
                call = seen_loss(whole, args, keywords, value) if value.requires_grad and value.numel() == 1 else None
                if call is not None:
                    self._losses = [*self._losses, call][-KEPT:]
            return value

        return loss

    def _ran(self, module: nn.Module, args: Any, keywords: Any, output: Any) -> None:
        """After any module's call: the largest that is in training mode is the model."""
        if torch.compiler.is_compiling() or not self._searching or self._looking:
            return
        if not module.training or not torch.is_grad_enabled():
            return
        self._compiled |= "_orig_mod" in module._modules
        size = self._sizes.get(id(module))
        if size is None:
            size = self._sizes[id(module)] = sum(p.numel() for p in module.parameters() if p.requires_grad)
        held = 0 if self._forward is None else self._sizes[id(self._forward.module)]
        if size > 0 and size >= held:
            self._forward = SeenForward(module, args, keywords, output, autocast_now(module))

    def _steps(self, optimizer: Any, *_: Any) -> None:
        """Before a step of the script: find what is trained, or look at it."""
        if self._looking or (self.optimizer is not None and optimizer is not self.optimizer):
            return
        self._looking = True
        try:
            if self._searching and self._forward is not None and (self._values or self._losses):
                self._begin(optimizer, self._forward)
            if self.watch is not None:
                self.watch(self.steps)
        finally:
            self._looking = False

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._looking:
            return
        seen = self._seen_before(optimizer)
        seen.steps += 1
        seen.values, self._values = [*seen.values, *self._values][-AVERAGED:], []
        if self.watch is not None:
            self.steps += optimizer is self.optimizer
            return
        if self._searching and sum(seen.steps for seen in self._seen.values()) >= PATIENCE:
            self._give_up("no loss that can be called again was seen")
        every = 10 if self.every == "auto" else self.every
        if seen.values and (seen.steps % every == 0 or seen.steps == 1):
            self._told_value(seen)

    def _seen_before(self, optimizer: Any) -> SeenOptimizer:
        if id(optimizer) not in self._seen:
            size = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
            self._seen[id(optimizer)] = SeenOptimizer(optimizer, size)
        return self._seen[id(optimizer)]

    def _begin(self, optimizer: Any, forward: SeenForward) -> None:
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if not any(id(p) in held for p in forward.module.parameters()):
            return
        probe = probe_of(forward, self._losses, self._roots)
        if probe is None:
            return
        name = type(probe.model.model).__name__
        try:
            self.watch = Watch(
                probe.model,
                optimizer=optimizer,
                probe=[probe.batch],
                loss=probe.loss,
                every=self.every,
                level=self.level,
                page_at=self.out / "run.html",
                autocast=forward.precision,
                name=name,
            )
        except (ValueError, TypeError, RuntimeError) as error:
            self._give_up(f"{name} cannot be read again: {' '.join(str(error).split())}")
            return
        self.optimizer, self.steps = optimizer, self._seen_before(optimizer).steps
        self._found()
        said(f"watching {name} with {type(optimizer).__name__}, {probe.words}; page: {self.out / 'run.html'}")

    def _give_up(self, why: str) -> None:
        self._found()
        said(f"{why}; the values of the loss are watched alone")

    def _found(self) -> None:
        """The search is over: give back what it held.

        A hook that a graph was compiled with stays to the end, since without it the graph would be compiled again.
        """
        for undo in self._searching:
            if self._compiled:
                self._undo.append(undo)
            else:
                undo()
        self._searching, self._forward, self._losses, self._roots, self._sizes = [], None, [], [], {}

    def _told_value(self, seen: SeenOptimizer) -> None:
        """A look at the losses of the last backward passes, where nothing more can be had.

        Where several optimizers take turns, as in a game of two networks, a loss that rises is no sign of trouble.
        """
        value = statistics.median(float(v) for v in seen.values)
        seen.records.append(Record(seen.steps, facts={"loss": value, "step_loss": value}))
        if len(self._seen) == 1 or not math.isfinite(value):
            lines = self._alarms.told(seen.steps, alarms_of(Run(tuple(map(moment_of, seen.records)))))
            seen.records[-1] = replace(seen.records[-1], alarms=tuple(lines))
