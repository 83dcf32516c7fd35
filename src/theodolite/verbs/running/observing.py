"""What the first steps of a script show, and the watch once they have.

Torch's own hooks show which modules are called and which optimizers step; a tape holds what lies between them and ``backward``.
Weights that change between two passes although no optimizer stepped are steps by hand. Once it is known what is trained, only
the calls of its modules and the steps are seen, and of some steps the constants are kept, so that trials train on the run's own
batches. Whatever goes wrong in here is one line, and the script goes on.
"""

import contextlib
import functools
import gc
import math
import os
import statistics
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.core.run import Run
from theodolite.evidence.batches import MOST_SAMPLES
from theodolite.measure.dynamics import bare_optimizer
from theodolite.measure.dynamics._silent_facts import (
    checkpoint_left_out,
    freeze_ignored,
    generator_shared,
    lr_ignored,
    parameters_replaced,
    restored_itself,
)
from theodolite.verbs.diagnosing import alarms_of
from theodolite.verbs.running import places
from theodolite.verbs.running.functional import TRANSFORMS, Functional, bare, is_transformed
from theodolite.verbs.running.probes import LOSSES, Probe, probe_of
from theodolite.verbs.running.slips import Slips
from theodolite.verbs.running.steps_by_hand import StepsByHand
from theodolite.verbs.running.tape import Program, Tape, program_of_sum
from theodolite.verbs.watching.alarms import Alarms
from theodolite.verbs.watching.look_context import Level
from theodolite.verbs.watching.records import Record
from theodolite.verbs.watching.training_hooks.sharded import Gathered, is_sharded
from theodolite.verbs.watching.training_hooks.silent_errors import (
    BACKWARD,
    FEWEST,
    IN_PLACE,
    NO_CHANGE,
    NO_GRADIENT,
    NO_STEP,
    PERIOD,
    REACHED,
    SHARE,
)
from theodolite.verbs.watching.training_hooks.training import autocast_now, is_silent
from theodolite.verbs.watching.watch import Watch
from theodolite.verbs.watching.watched_run import moment_of

PATIENCE, AVERAGED = 20, 5
"""Steps after which the loss is taken for one that cannot be called again; values of it that are kept."""
SELDOM = 10.0
"""Seconds between two writings of the numbers of a run that goes on."""
RESETS, WITHIN = 2, 100
"""Weights that are put back so often, and once in so many steps: each time a training of its own begins, as in meta-learning."""
USED_UP = "with no parameters left (the generator of model.parameters() was used up before)"
SAME_ORDER = "every epoch goes through the same batches in the same order"
MOST_BYTES, A_STEP = 1 << 26, 32
"""What is kept of the steps of a run, for trials, and the samples that a whole step counts as, or as many as it has calls."""


def said(words: str) -> None:
    """One line on standard error; only the first of several processes speaks."""
    if not is_silent():
        print(f"theodolite: {words}", file=sys.stderr, flush=True)


def from_here(place: Path) -> Path:
    """A path as one would type it in this folder, where it lies below it."""
    here = Path.cwd()
    return place.relative_to(here) if place.is_relative_to(here) else place


def _forget(hook: int) -> None:
    """Take out what torch leaves of a global hook that was removed: a model compiled later would be warned of hooks."""
    left = getattr(torch.nn.modules.module, "_global_forward_hooks_with_kwargs", None)
    if left is not None:
        left.pop(hook, None)
    always = getattr(torch.nn.modules.module, "_global_forward_hooks_always_called", None)
    if always is not None:
        always.pop(hook, None)


@dataclass
class SeenOptimizer:
    """An optimizer that takes steps: how many so far, and the values that backward was called on before the last of them."""

    optimizer: Any
    size: int
    steps: int = 0
    values: list[Tensor] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


@dataclass
class Pass:
    """One backward pass: its value, and the program that made it."""

    value: Tensor
    program: Program | None


@dataclass
class Observer:
    """Sees a script train; ``watch`` is there once it is known what is trained."""

    out: Path
    every: int | Literal["auto"] = "auto"
    level: Level = "standard"
    on_watch: Callable[[Watch], Any] | None = None  # called once it is there
    watch: Watch | None = None
    steps: int = 0
    optimizer: Any = None
    hand: StepsByHand | None = None
    _trains: bool = False  # whether the modules were in training mode then
    kept: list[Any] = field(default_factory=list)
    broken: str = ""
    recognized: str = ""
    _alarms: Alarms = field(default_factory=Alarms)
    _probe: Probe | None = None
    _gathered: Gathered | None = None
    _tape: Tape | None = None
    _passes: list[Pass] = field(default_factory=list)
    _before: list[Pass] = field(default_factory=list)
    _values: list[Tensor] = field(default_factory=list)
    _seen: dict[int, SeenOptimizer] = field(default_factory=dict)
    _made: Any = field(default_factory=weakref.WeakSet)
    _earlier: Any = field(default_factory=weakref.WeakSet)  # a notebook's
    _functional: Functional = field(default_factory=Functional)
    _transforming: bool = False
    _left: Any = field(default_factory=weakref.WeakSet)  # optimizers that others took the place of
    _stepped_since: set[frozenset[int]] = field(default_factory=set)
    _stepping: Any = None
    _undo: list[Callable[[], Any]] = field(default_factory=list)
    _searching: list[Callable[[], Any]] = field(default_factory=list)
    _outer: list[nn.Module] = field(default_factory=list)
    _within: int = 0
    _tape_is_off: bool = False
    _bytes: int = 0
    _samples: int = 0
    _looking: bool = False
    _compiled: bool = False
    _precision: torch.dtype | None = None
    silent: dict[str, tuple[str, ...]] = field(default_factory=dict)
    clips: dict[str, float] = field(default_factory=dict)
    backward_passes: int = 0
    waiting: bool = False  # gradients of what an optimizer holds, and no step so far
    _reached: list[Tensor] = field(default_factory=list)  # that a backward pass reached whose program is not known
    _spent: list[Any] = field(default_factory=list)
    _late: int = 0
    _empty: int = 0  # steps for which no parameter had a gradient
    _clipped: bool = False
    _unscaled: bool = False
    _clipped_steps: int = 0
    _scaled: tuple[Any, Any] = (None, None)
    _scale: float = 1.0
    _pulled_up: float = 1.0  # by how much the gradients of the last backward pass are too large
    _scaled_steps: int = 0
    _orders: dict[int, Any] = field(default_factory=dict)  # of each data set that a loader draws from
    _seeded: tuple[int, Any] = (-1, None)  # the step that was made last when a seed was set, and which
    _reseeded: int = 0
    _scheduled: list[Any] = field(default_factory=list)
    resets: int = 0
    _written: float = -math.inf
    _process: int = field(default_factory=os.getpid)  # a forked one is another's

    def __post_init__(self) -> None:
        self._slips = Slips(self.silent)

    def install(self) -> None:
        """Hooks and wrappers, all of which `remove` takes away."""
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        before = register_module_forward_pre_hook(self._enters)
        after = register_module_forward_hook(self._leaves, with_kwargs=True, always_call=True)
        self._searching = [before.remove, after.remove, functools.partial(_forget, after.id)]
        self._undo = [
            register_optimizer_step_pre_hook(self._guarded(self._steps)).remove,
            register_optimizer_step_pre_hook(self._begins_step).remove,
            register_optimizer_step_post_hook(self._ends_step).remove,
            register_optimizer_step_post_hook(self._guarded(self._stepped)).remove,
        ]
        self._wrap(torch.autograd, "backward", self._backward)
        self._wrap(torch.autograd, "grad", self._asked)
        self._earlier.update(each for each in gc.get_objects() if issubclass(type(each), torch.optim.Optimizer))
        self._made |= self._earlier
        self._wrap(torch.optim.Optimizer, "__init__", self._optimizer_made)
        self._wrap(torch.optim.Optimizer, "zero_grad", self._clears)
        self._wrap(nn.Module, "zero_grad", self._clears)
        self._wrap(torch, "compile", self._compiling)
        self._wrap(torch, "manual_seed", self._seeds)
        self._wrap(nn.Module, "load_state_dict", self._loads)
        for kind in (torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            self._wrap(kind, "__init__", self._schedules)
        self._wrap(torch.amp.GradScaler, "unscale_", self._unscales)
        self._wrap(torch.amp.GradScaler, "scale", self._scales)
        self._wrap(torch.utils.data.DataLoader, "__iter__", self._reads)
        for owner in (torch.nn.utils, torch.nn.utils.clip_grad):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                self._wrap(owner, name, self._clips)
        for name, around in places.WRAPPED:
            self._wrap(warnings, name, functools.partial(self._warned, around))
        for name in TRANSFORMS:
            self._wrap(torch.func, name, self._transforms)
        self._write_functions()
        self._tape = Tape({getattr(torch.nn.functional, name): name for name in LOSSES}, self._functional.standing)
        self._tape.on()

    def remove(self) -> None:
        """Look no longer."""
        self._end_tape()
        for undo in (*self._searching, *reversed(self._undo)):
            undo()
        self._searching, self._undo = [], []

    def _wrap(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        whole = getattr(owner, name)

        @functools.wraps(whole)
        def wrapped(*args: Any, **keywords: Any) -> Any:
            return around(whole, *args, **keywords)

        setattr(owner, name, wrapped)
        self._undo.append(functools.partial(setattr, owner, name, whole))

    def _write_functions(self) -> None:
        """A function with a backward pass of the script's own is none of torch's: its calls are written down here."""
        owner: Any = torch.autograd.Function
        whole = owner.__dict__["apply"]

        def apply(kind: Any, *args: Any, **keywords: Any) -> Any:
            out, tape = whole.__func__(kind, *args, **keywords), self._tape
            if tape is not None and not (tape.inside or tape.idle or self._within) and torch.is_grad_enabled():
                with tape.aside():
                    tape.note(kind.apply, args, keywords, out)
            return out

        owner.apply = classmethod(apply)
        self._undo.append(functools.partial(setattr, owner, "apply", whole))

    def _guarded(self, inner: Callable[..., Any]) -> Callable[..., None]:
        """What fails in here is one line, and nothing is watched any more; the script goes on."""

        @functools.wraps(inner)
        def guarded(*args: Any, **keywords: Any) -> None:
            if self._looking or self.broken or os.getpid() != self._process:
                return
            self._looking = True
            aside = contextlib.nullcontext() if self._tape is None else self._tape.aside()
            try:
                with aside:
                    inner(*args, **keywords)
            except Exception as error:
                self.broken = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                said(f"watching stopped: {self.broken}; the script goes on")
            finally:
                self._looking = False

        return guarded

    def _end_tape(self) -> None:
        if self._tape is not None:
            self._tape.end()
            self._tape = None

    def _warned(self, around: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        return None if self._looking else around(*args, **keywords)

    def _compiling(self, whole: Any, *args: Any, **keywords: Any) -> Any:
        """A function that is compiled would be compiled with the tape in it: nothing is written down any more."""
        target = args[0] if args else keywords.get("model")
        if not isinstance(target, nn.Module):
            self._end_tape()
        self._compiled = True
        return whole(*args, **keywords)

    def _optimizer_made(self, whole: Any, optimizer: Any, *args: Any, **keywords: Any) -> None:
        whole(optimizer, *args, **keywords)
        if not self._looking:
            self._made.add(optimizer)

    def _clears(self, whole: Any, *args: Any, **keywords: Any) -> Any:
        """No part of a loss, and several accesses a parameter, each of which the tape would be asked about."""
        with contextlib.nullcontext() if self._tape is None else self._tape.aside():
            return whole(*args, **keywords)

    @property
    def restarts(self) -> bool:
        """Whether the run is many short trainings, each from weights that were put back."""
        return self.resets >= RESETS and self.resets * WITHIN >= self.steps

    # what goes wrong silently

    def _loads(self, whole: Any, module: nn.Module, state: Any, *args: Any, **keywords: Any) -> Any:
        """A checkpoint of which no tensor fits, loaded all the same."""
        found = whole(module, state, *args, **keywords)
        if self.watch is not None and not self._looking and any(part is module for part in self.watch.model.modules()):
            self.resets += 1
            if (between := self.watch.silent_errors.between) is not None:
                between.forget()
            self.watch.plays |= self.restarts
            self.watch.silent_errors.repeats |= self.restarts
        odd = () if self._looking else checkpoint_left_out(module, state, found)
        if not odd and not self._looking:
            odd = restored_itself(module, state, trained=bool(self._seen))
        if odd:
            self.silent["checkpoint not loaded"] = odd
        elif not self._looking:
            self._slips.loads(module, state)
        return found

    def _reads(self, whole: Any, loader: Any) -> Any:
        """A loader is begun: whether its workers draw alike, and whether one with many batches begins anew in every step."""
        if not self._looking:
            shared = generator_shared(loader)
            if shared:
                self.silent["workers alike"] = shared
            if self.watch is not None and not isinstance(loader.dataset, torch.utils.data.IterableDataset):
                self.watch.silent_errors.restarts += len(loader) > 1
            self._compare_order(loader)
            self._slips.reads(loader)
        return whole(loader)

    def _compare_order(self, loader: Any) -> None:
        """Whether a loader that is trained from draws its order as it did in the epoch before."""
        sampler, steps = loader.sampler, sum(seen.steps for seen in self._seen.values())
        told = isinstance(sampler, torch.utils.data.DistributedSampler)
        if told:
            state: Any = (sampler.epoch, sampler.seed) if sampler.shuffle else None
        elif type(sampler) is torch.utils.data.RandomSampler:
            state = (
                (torch.default_generator if sampler.generator is None else sampler.generator)
                .get_state()
                .numpy()
                .tobytes()
            )
        else:
            state = None
        last, since, epochs, again = self._orders.get(id(loader.dataset), (None, 0, 0, 0))
        trains = self.watch is None or any(part.training for part in self.watch.silent_errors.parts)
        if state is None or not trains or (epochs and steps == since):
            return
        again += state == last
        self._orders[id(loader.dataset)] = state, steps, epochs + 1, again
        if again >= RESETS and told:
            said = f"{again + 1} of {epochs + 1} epochs had the same order, because DistributedSampler.set_epoch was never called"
            self.silent["batch repeated"] = said, "loader.sampler.set_epoch(epoch) at the start of every epoch"
        elif again >= RESETS:
            self.silent["draws repeated"] = f"{again}", f"{epochs + 1}", "epochs", SAME_ORDER

    def _seeds(self, whole: Any, seed: Any) -> Any:
        """Whether the same seed is set between any two steps; one that a `fork_rng` takes back is none."""
        steps = sum(seen.steps for seen in self._seen.values())
        if not self._looking and steps > self._seeded[0]:
            last, again = self._seeded == (steps - 1, seed) and torch.initial_seed() == seed, self._reseeded
            self._seeded, self._reseeded = (steps, seed), again + last
            if self._reseeded >= max(FEWEST, SHARE * steps):
                why = f"the loop calls torch.manual_seed({seed}) every time"
                self.silent["draws repeated"] = f"{self._reseeded:,}", f"{steps:,}", "steps", why
        return whole(seed)

    def _schedules(self, whole: Any, schedule: Any, *args: Any, **keywords: Any) -> None:
        whole(schedule, *args, **keywords)
        if not self._looking:
            self._scheduled = [*self._scheduled[-7:], schedule]

    def _idle_schedule(self) -> tuple[str, ...]:
        """What is said of a scheduler that moves nothing, at the end of the script."""
        inner = [one for own in self._scheduled for one in getattr(own, "_schedulers", ())]
        of = {id(own): bare_optimizer(own.optimizer) for own in self._scheduled}
        for own in self._scheduled:
            seen, moves = self._seen.get(id(of[id(own)])), own.last_epoch > 0
            self._slips.cycles(own, 0 if seen is None else seen.steps)
            if any(own is one for one in inner) or isinstance(own, torch.optim.swa_utils.SWALR):
                continue
            beside = [o for o in self._scheduled if of[id(o)] is of[id(own)] and o.last_epoch > 0]
            if seen is not None and seen.steps >= WITHIN and not moves and not beside:
                said = f"{type(own).__name__} has no effect: it was never stepped"
                return said, "scheduler.step() once per epoch, after the steps of the optimizer"
            held = _held_by(of[id(own)])
            others = [s for s in self._seen.values() if s.steps >= WITHIN and held & _held_by(s.optimizer)]
            if seen is None and moves and others:
                said = f"{type(own).__name__} has no effect: its optimizer makes no steps"
                return said, "create the scheduler from the optimizer that makes the steps"
        return next(filter(None, (lr_ignored(seen.optimizer) for seen in self._seen.values())), ())

    def _clips(self, whole: Any, *args: Any, **keywords: Any) -> Any:
        if args and not isinstance(args[0], Tensor):
            args = (list(args[0]), *args[1:])
        given = list(args[0]) if args and isinstance(args[0], list) else [None]
        late = any(p is q for p in given[:1] for q in self._stepped_parameters())
        self._clipped = not self._unscaled
        named = {"clip_grad_norm_": ("clip norm", "max_norm"), "clip_grad_value_": ("clip value", "clip_value")}
        kind, word = named.get(getattr(whole, "__name__", ""), ("", ""))
        limit = args[1] if len(args) > 1 else keywords.get(word)
        self._late += (1 if late or not given else -1) * (isinstance(limit, int | float) and math.isfinite(limit))
        if self._late >= FEWEST:
            self.silent["clipped late"] = f"{self._late:,}", "after optimizer.step()" if given else USED_UP
        usual = len(args) < 3 and keywords.get("norm_type", 2.0) == 2.0  # the norm that trials clip by
        if kind and usual and isinstance(limit, int | float) and math.isfinite(limit) and len(self._made) < 2:
            self.clips[kind] = float(limit)
        return whole(*args, **keywords)

    def _stepped_parameters(self) -> Iterator[Any]:
        """What was stepped since the last backward pass, where one was seen."""
        return (p for optimizer in self._spent for group in optimizer.param_groups for p in group["params"])

    def _scales(self, whole: Any, scaler: Any, outputs: Any) -> Any:
        """A loss that is scaled up for its gradients only: what is minimized, and read, is the loss itself."""
        found = whole(scaler, outputs)
        if isinstance(outputs, Tensor) and not self._looking:
            self._scaled = (found, outputs)
            self._scale = float(scaler.get_scale())
        return found

    def _unscales(self, whole: Any, scaler: Any, optimizer: Any) -> Any:
        scale = float(scaler.get_scale()) if self._clipped else 1.0
        if scale > 1:
            self._clipped_steps += 1
            self.silent["clipped scaled"] = (f"{self._clipped_steps:,}", f"{scale:,.0f}")
        self._unscaled, self._pulled_up = True, 1.0
        return whole(scaler, optimizer)

    # what modules do

    def _enters(self, module: nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling() or self._looking or self._within or self.broken:
            return
        if next(module.parameters(), None) is None:
            return
        if not self._outer:
            self._entering(module, args)
        self._outer.append(module)

    def _leaves(self, module: nn.Module, args: Any, *rest: Any) -> None:
        *named, output = rest  # torch leaves the keywords out where the module has raised
        if (
            torch.compiler.is_compiling()
            or self._looking
            or self._within
            or not self._outer
            or self._outer[-1] is not module
        ):
            return
        self._outer.pop()
        if not self._outer:
            self._leaving(module, args, named[0] if named else {}, output)

    def _entering(self, module: nn.Module, inputs: Sequence[Any]) -> None:
        """Before a module is called from outside any other."""
        training = module.training and torch.is_grad_enabled()
        if self.watch is not None and not self._transforming:
            self._guarded(self.watch.silent_errors.saw_call)(module, inputs)
        if training and self.hand is not None and not self._transforming:
            self._guarded(self._by_hand)()
        tape = self._tape
        if tape is not None:
            if self._searching and training and not self._compiled:
                tape.inside += 1
            elif tape.is_on_top():
                tape.off()
                tape.inside = -1  # taken off, to be put back
            else:
                tape.inside += 1

    def _leaving(self, module: nn.Module, args: Any, keywords: Any, output: Any) -> None:
        tape = self._tape
        if tape is None:
            return
        if tape.inside < 0:
            tape.inside = 0
            tape.on()
        else:
            tape.inside -= 1
        if output is not None and torch.is_grad_enabled() and not tape.idle:
            with tape.aside():
                tape.note(None, args, keywords, output, self._functional.twin(module))
                if module.training:
                    self._precision = autocast_now(module)

    # what backward does

    def _backward(self, whole: Any, *args: Any, **keywords: Any) -> Any:
        tensors = args[0] if args else keywords.get("tensors")
        roots = [tensors] if isinstance(tensors, Tensor) else [t for t in tensors or () if isinstance(t, Tensor)]
        if self._looking or self.broken or torch.compiler.is_compiling() or self._within:
            return whole(*args, **keywords)
        self.backward_passes, self._spent = self.backward_passes + 1, []
        self._guarded(self._seen_backward)(roots)
        self._within += 1
        try:
            found = whole(*args, **keywords)
        finally:
            self._within -= 1
        self._guarded(self._after_backward)({})
        return found

    def _asked(self, whole: Any, *args: Any, **keywords: Any) -> Any:
        """Gradients that are asked for: a step by hand may follow."""
        if self._looking or self.broken or torch.compiler.is_compiling() or self._within or self._transforming:
            return whole(*args, **keywords)
        self.backward_passes, self._spent = self.backward_passes + 1, []
        roots, inputs = (
            args[n] if len(args) > n else keywords.get(name) for n, name in enumerate(("outputs", "inputs"))
        )
        plain = not keywords.get("create_graph") and not isinstance(inputs, Tensor)
        leaves = [t for t in inputs or () if isinstance(t, Tensor) and t.is_leaf] if plain else []
        if leaves and isinstance(roots, Tensor) and roots.numel() == 1:
            self._guarded(self._seen_backward)([roots])
        else:
            leaves = []
        self._within += 1
        try:
            found = whole(*args, **keywords)
        finally:
            self._within -= 1
        if leaves:
            self._guarded(self._after_backward)(
                {id(t): g for t, g in zip(inputs or (), found, strict=False) if g is not None}
            )
        return found

    def _transforms(self, whole: Any, func: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
        """`torch.func.grad` of a loss: what it answers is watched where it is called from outside of all transforms."""
        plain = whole(func, argnums, has_aux)

        @functools.wraps(plain)
        def called(*args: Any, **keywords: Any) -> Any:
            aside = self._looking or self.broken or self._within or os.getpid() != self._process
            if aside or not isinstance(argnums, int) or torch.compiler.is_compiling() or is_transformed():
                return plain(*args, **keywords)
            own, known = self._functional, []
            self._guarded(lambda: known.append(own.take(args[argnums])))()
            if not known or not known[0]:
                return plain(*args, **keywords)
            self.backward_passes, self._spent, self._transforming = self.backward_passes + 1, [], True
            if self.hand is not None:
                self._guarded(self._by_hand)()
            try:
                found = whole(own.noting(func, argnums, self._guarded(self._saw_transform)), argnums, has_aux)(
                    *args, **keywords
                )
            finally:
                self._transforming = False
            gradients = found if whole.__name__ == "grad" and not has_aux else found[0]
            self._guarded(lambda: self._after_backward(own.gradients(gradients)))()
            return found

        return called

    def _saw_transform(self) -> None:
        """The loss of a transform was computed: as before a backward pass, while its tensors are there."""
        root = self._functional.root
        if root is None or root.numel() != 1:
            return
        program, value = self._program_to([root]), bare(root)
        self._values = [*self._values, value][-AVERAGED:]
        if self.watch is not None:
            self.watch.note_loss(value)
        if self._tape is not None:
            self._passes = [*self._passes[-63:], Pass(value, program)]

    def _seen_backward(self, roots: Sequence[Tensor]) -> None:
        scaled, loss = self._scaled
        self._pulled_up = self._scale if any(root is scaled for root in roots) else 1.0
        roots, self._scaled = [loss if root is scaled else root for root in roots], (None, None)
        single = [root for root in roots if root.numel() == 1]
        program = self._program_to(single) if single and len(single) == len(roots) else None
        unknown = program is None and self._searching and self.hand is None and self.backward_passes <= PATIENCE
        self._reached = _leaves_of(single) if unknown else []
        if self._made and self.backward_passes <= 2 * FEWEST + 2:
            self._slips.pulls(_leaves_of(single), frozenset().union(*map(_held_by, self._made)))
        if self.hand is not None:
            self._by_hand()  # the tape is cleared by a step, and the forward pass of this one is on it
        self._values = [*self._values, *(root.detach() for root in single)][-AVERAGED:]
        if self.watch is not None and single:
            self.watch.note_loss(single[-1])
        if self._tape is not None and single and len(single) == len(roots):
            self._passes = [*self._passes[-63:], Pass(single[-1].detach(), program)]

    def _program_to(self, roots: Sequence[Tensor]) -> Program | None:
        if self._tape is None or not (self._searching or self._keeps()):
            return None
        held = frozenset().union(*map(_held_by, self._made))
        return self._tape.program(roots, held)

    def _after_backward(self, gradients: dict[int, Tensor]) -> None:
        """Where no optimizer is there for what has a gradient now, its weights may be changed by hand."""
        if not self._seen:
            groups = [group for optimizer in self._made for group in optimizer.param_groups]
            self.waiting = any(p.grad is not None for group in groups for p in group["params"])
        program = self._passes[-1].program if self._passes else None
        if self._searching and self.hand is None and (program is not None or self._reached):
            parts = () if program is None else program.parts
            known = () if program is None else program.parameters
            own = [*(p for part in parts for p in part.parameters()), *known, *self._reached]
            reached = [p for p in own if p.requires_grad and (p.grad is not None or id(p) in gradients)]
            held = frozenset().union(*map(_held_by, self._made))
            if self._stepping is not None:
                self._begin(self._stepping, self._passes[-1:])
            elif reached and not any(id(p) in held for p in reached):
                self.hand = StepsByHand(reached)
                self._trains = program is not None and all(part.training for part in parts)
                self._begin(self.hand.optimizer, self._passes[-1:])
        if self.hand is not None:
            self.hand.expect(gradients)

    def _keeps(self) -> bool:
        return self._probe is not None and self._samples < MOST_SAMPLES and self._bytes < MOST_BYTES

    # steps

    def _by_hand(self) -> None:
        """Whether weights have changed since the last pass although no optimizer made a step."""
        assert self.hand is not None
        if self.hand.was_taken():
            self._after_step(self.hand.optimizer)
            if self.watch is not None:
                if self.steps == 1:
                    self._announce(
                        "steps by hand" + ("" if self.hand.plain else " that are not plain gradient descent")
                    )
                self._look()

    def _look(self) -> None:
        """A look where one is due, and the numbers on disk: a run that is killed leaves what was known of it."""
        assert self.watch is not None
        if self.watch(self.steps) is not None and time.monotonic() - self._written > SELDOM:
            self._written = time.monotonic()
            self.watch.json(self.out / "run.json")

    def _steps(self, optimizer: Any, *_: Any) -> None:
        """Before a step of the script: find what is trained, or look at it."""
        self._stepping = optimizer
        self._slips.steps()
        if self._pulled_up > 1 and getattr(optimizer, "grad_scale", None) is None:
            self._scaled_steps += 1
            if self._scaled_steps >= FEWEST:
                self.silent["step scaled"] = f"{self._scaled_steps:,}", f"{self._pulled_up:,.0f}"
        if self.watch is None and self._searching and (self._passes or self._before):
            self._begin(optimizer, self._passes or self._before)
        if self.watch is not None and optimizer is not self.optimizer and self.hand is None and self._gathered is None:
            self._follow(optimizer)
        if self.watch is not None and optimizer is self.optimizer and self.hand is None:
            self._look()

    def _follow(self, optimizer: Any) -> None:
        """Go on with an optimizer of the same parameters in place of the one before, as long as that one does not come back."""
        assert self.watch is not None
        if optimizer in self._left or _held_by(optimizer) != _held_by(self.optimizer):
            return
        self.watch.follow(optimizer)
        self._seen[id(optimizer)] = replace(self._seen.pop(id(self.optimizer)), optimizer=optimizer)
        self._left.add(self.optimizer)
        self.optimizer = optimizer

    def _begins_step(self, optimizer: Any, args: Sequence[Any], keywords: Any) -> None:
        """What an optimizer computes is no part of a loss, unless a closure makes the loss in it: the tape is taken off."""
        closure = len(args) > 1 or bool(keywords)
        if self._tape is not None and not closure and self._tape.inside == 0 and self._tape.is_on_top():
            self._tape.off()
            self._tape_is_off = True

    def _ends_step(self, *_: Any) -> None:
        if self._tape_is_off and self._tape is not None:
            self._tape.on()
        self._tape_is_off = False

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        self._stepping, self._clipped, self._unscaled, self.waiting = None, False, False, False
        self._spent += [optimizer] if self.backward_passes else []
        if self.watch is None or self.hand is not None:
            self._empty += all(p.grad is None for group in optimizer.param_groups for p in group["params"])
        self._after_step(optimizer)

    def _after_step(self, optimizer: Any) -> None:
        seen = self._seen_before(optimizer)
        seen.steps += 1
        seen.values, self._values = [*seen.values, *self._values][-AVERAGED:], []
        if self.watch is not None and optimizer is not self.optimizer and self._passes:
            self.watch.plays |= self._plays(optimizer)
        if self._passes:
            self._keep(optimizer)
            self._before, self._passes = self._passes, []
        own = _held_by(optimizer)  # by what it moves: a script may make its optimizer anew
        again = own in self._stepped_since
        self._stepped_since.add(own)
        others = set(map(_held_by, self._made)) - self._stepped_since if len(self._made) > 1 else set()
        if self._tape is not None and (again or not others):
            if self._tape.used:
                self._slips.left_out(self._tape.unused())
            self._tape.clear()
            self._stepped_since = set()
        stepped = sum(seen.steps for seen in self._seen.values())
        if stepped % WITHIN == 0:
            self._note_never_stepped(stepped)
        if self.watch is not None:
            self.steps += optimizer is self.optimizer
            return
        if self._searching and stepped >= PATIENCE:
            self._give_up("no loss was found that can be recomputed")
        every = 10 if self.every == "auto" else self.every
        if seen.values and (seen.steps % every == 0 or seen.steps == 1):
            self._told_value(seen)

    def _note_never_stepped(self, steps: int) -> None:
        """Whether an optimizer made no step so far although its parameters got gradients, and others made theirs."""
        self.silent.pop("step without effect", None)
        moved = frozenset().union(*(_held_by(seen.optimizer) for seen in self._seen.values()))
        for optimizer in self._made - self._earlier:
            held = [p for group in optimizer.param_groups for p in group["params"]]
            pulled = [p.grad is not None and not hasattr(p, "placements") and float(p.grad.norm()) > 0 for p in held]
            if all(pulled) and not any(id(p) in moved for p in held):
                kind, size = type(optimizer).__name__, sum(p.numel() for p in held)
                said = f"{kind} made none of the {steps:,} steps, although its {size:,} weights got gradients"
                self.silent["step without effect"] = said, REACHED

    def _keep(self, optimizer: Any) -> None:
        """The batches of this step, while there is room."""
        if self._probe is None or optimizer is not self.optimizer:
            return
        for one in self._passes:
            if one.program is not None:
                self._slips.reaches(one.program)
            if one.program is not None and self._keeps():
                batch = self._probe.batch_of(self._whole(one.program))
                if batch is not None:
                    self.kept.append(batch)
                    self._samples += self._probe.size or max(A_STEP, len(one.program.calls))
                    self._bytes += sum(c.numel() * c.element_size() for c in one.program.constants)
        if not self._keeps():
            self._end_tape()

    def _seen_before(self, optimizer: Any) -> SeenOptimizer:
        if id(optimizer) not in self._seen:
            size = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
            self._seen[id(optimizer)] = SeenOptimizer(optimizer, size)
        return self._seen[id(optimizer)]

    def _begin(self, optimizer: Any, passes: Sequence[Pass]) -> None:
        """Watch what this optimizer trains, where its loss can be called again."""
        held = _held_by(optimizer)
        reached = [p for p in passes if p.program is not None and _trains(p.program, held)]
        if not reached or self._is_one_of_several(optimizer, held):
            return
        found = self._program_of(reached)
        if found is None:
            return
        try:
            if any(map(is_sharded, found.parts)):
                self._gathered = Gathered(max(found.parts, key=_size), optimizer)
        except ValueError as error:
            self._give_up(" ".join(str(error).split()))
            return
        found = self._whole(found)
        self._probe = probe_of(found, () if self._tape is None else self._tape.within)
        alarms_of(Run())  # what has to be loaded once is no part of a look's price
        name = _name_of(self._probe.model, found)
        try:
            self.watch = Watch(
                self._probe.model,
                optimizer=optimizer if self._gathered is None else self._gathered.optimizer,
                gathered=self._gathered,
                probe=[self._probe.batch],
                data=self.kept,
                loss=self._probe.loss,
                every=self.every,
                level=self.level,
                batch_size=self._probe.size,
                page_at=self.out / "run.html",
                autocast=self._precision,
                name=name,
            )
        except (ValueError, TypeError, RuntimeError) as error:
            self._probe = None
            self._give_up(f"{name} cannot be read again: {' '.join(str(error).split())}")
            return
        self.watch.note_loss(passes[-1].value)
        self.watch.silent_errors.stands_in |= self.hand is not None
        self.watch.silent_errors.extra = self.silent  # what is seen beside its steps
        if self.watch.events is not None:
            self.watch.events.told = self.clips
        self.optimizer, self.steps = optimizer, self._seen_before(optimizer).steps
        self.kept.append(self._probe.batch)
        parts = [part for p in reached if p.program is not None for part in p.program.parts]
        self._found([*parts, *self._functional.called(parts)])
        if self.hand is None:
            self._announce(type(optimizer).__name__)
        if self.on_watch is not None:
            self.on_watch(self.watch)

    def _announce(self, stepper: str) -> None:
        assert self.watch is not None and self._probe is not None
        self.recognized = f"{self.watch.subject.name} with {stepper}, {self._probe.words}"
        said(f"watching {self.recognized}; page: {from_here(self.out / 'run.html')}")

    def _program_of(self, passes: Sequence[Pass]) -> Program | None:
        """That of the last pass, or of all together where they do not do the same: real and made samples, several losses."""
        programs = [p.program for p in passes if p.program is not None]
        if len({program.signature for program in programs}) == 1 or len(programs) > 8:
            return programs[-1]
        return program_of_sum(programs)

    def _whole(self, program: Program) -> Program:
        """With a copy that was gathered in place of what is spread over processes."""
        if self._gathered is None:
            return program
        return replace(program, parts=tuple(map(self._gathered.replaced, program.parts)))

    def _is_one_of_several(self, optimizer: Any, held: Set[int]) -> bool:
        """Whether another optimizer that was made is larger: the first step of that one is waited for, for a while."""
        size = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
        sizes = {
            id(other): sum(p.numel() for group in other.param_groups for p in group["params"])
            for other in self._made
            if other is not optimizer
        }
        # made anew, perhaps
        steps = sum(seen.steps for seen in self._seen.values() if _held_by(seen.optimizer) == held)
        return any(other > size for other in sizes.values()) and steps < 3

    def _plays(self, other: Any) -> bool:
        """Whether another optimizer, on a loss of its own, trains a part of what is watched, or against it."""
        assert self.watch is not None
        held, theirs = _held_by(self.optimizer), _held_by(other)
        shared = {id(p) for p in self.watch.model.parameters()} & (theirs - held)
        return bool(shared) or any(one.program is not None and _trains(one.program, held) for one in self._passes)

    def _give_up(self, why: str) -> None:
        self._found(())
        self._end_tape()
        said(f"{why}; only the loss values are watched")

    def _found(self, parts: Sequence[nn.Module]) -> None:
        """The search is over: only the calls of these modules are still seen, by the classes that they are of.

        Hooks on the modules themselves would be saved and copied with them. A hook that a graph was compiled with stays to the
        end, since without it the graph would be compiled again.
        """
        for undo in self._searching:
            if self._compiled:
                self._undo.append(undo)
            else:
                undo()
        if self._searching and not self._compiled:
            self._outer = []
            for kind in {type(part) for part in parts}:
                self._see_calls(kind, parts)
        self._searching = []

    def _see_calls(self, kind: Any, parts: Sequence[nn.Module]) -> None:
        members = {id(part) for part in parts}
        whole, own = kind.__call__, "__call__" in kind.__dict__

        @functools.wraps(whole)
        def called(module: Any, *args: Any, **keywords: Any) -> Any:
            seen = id(module) in members and not (self._looking or self._within or self._outer or self.broken)
            if not seen or torch.compiler.is_compiling():
                return whole(module, *args, **keywords)
            output = None
            self._outer.append(module)
            self._entering(module, (*args, *keywords.values()))
            try:
                output = whole(module, *args, **keywords)
            finally:
                self._outer.pop()
                self._leaving(module, args, keywords, output)
            return output

        kind.__call__ = called
        self._undo.append(functools.partial(_restored, kind, whole if own else None))

    def _told_value(self, seen: SeenOptimizer) -> None:
        """A look at the losses of the last backward passes, where nothing more can be had.

        Where several optimizers take turns, as in a game of two networks, a loss that rises is no sign of trouble.
        """
        value = statistics.median(float(v) for v in seen.values)
        lr = max((float(group.get("lr", 0.0)) for group in seen.optimizer.param_groups), default=0.0)
        seen.records.append(Record(seen.steps, lr=lr or None, facts={"loss": value, "step_loss": value}))
        if len(self._seen) == 1 or not math.isfinite(value):
            lines = self._alarms.new_lines(seen.steps, alarms_of(Run(tuple(map(moment_of, seen.records)))))
            seen.records[-1] = replace(seen.records[-1], alarms=tuple(lines))

    def values(self) -> list[SeenOptimizer]:
        """The optimizers of which only values of the loss are known, the largest first."""
        return sorted((seen for seen in self._seen.values() if seen.records), key=lambda seen: -seen.size)

    def trained_beside(self) -> tuple[int, int]:
        """How many models a script trained that the watch does not see, such as those of later folds, and in how many steps."""
        assert self.watch is not None
        own = {id(p) for p in self.watch.model.parameters()} | (frozenset() if self.hand else _held_by(self.optimizer))
        other = [(_held_by(seen.optimizer), seen.steps) for seen in self._seen.values() if seen.steps >= FEWEST]
        beside = [(held, steps) for held, steps in other if not held & own]
        return len({frozenset(held) for held, _ in beside}), sum(steps for _, steps in beside)

    def finish(self) -> None:
        """The script is over: a last step by hand is counted, and a watch on what was never trained is dropped."""
        if idle := self._idle_schedule():
            self.silent["schedule idle"] = idle
        stepped = sum(seen.steps for seen in self._seen.values())
        held = (p for s in self._seen.values() for group in s.optimizer.param_groups for p in group["params"])
        if not_frozen := freeze_ignored((), held):
            self.silent["frozen moves"] = not_frozen
        replaced: tuple[str, ...] = ()
        if self.hand is not None:
            self._guarded(self._by_hand)()
            if self.watch is not None and self.steps == 0:
                others = (parameters_replaced(self.watch.model, seen.optimizer) for seen in self._seen.values())
                replaced = next(filter(None, others), ())
                self.watch.close()
                self.watch = None
        if not stepped and self.watch is None:
            self._slips.without_steps()
        if self.watch is None and self._empty == stepped >= FEWEST:
            count = f"{stepped:,}"
            self.silent["step without effect"] = NO_GRADIENT.format(count, count), BACKWARD
            if replaced:
                self.silent["optimizer of another"] = replaced
        if self.waiting and self.backward_passes >= FEWEST:
            self.silent["step without effect"] = NO_STEP.format(self.backward_passes), REACHED
        if self.watch is None and not stepped and self.hand is not None and self._is_idle(self.hand):
            self.silent["step without effect"] = NO_CHANGE.format(self.hand.passes), IN_PLACE
        if self.watch is None and self.silent:
            self._alarms.new_lines(stepped, alarms_of(Run(silent=self.silent)))

    def _is_idle(self, hand: StepsByHand) -> bool:
        """Whether a network in training mode got gradients again and again, cleared in between, and no weight ever changed.

        Where an input asks for a gradient too, that may be what is wanted.
        """
        trained: list[Tensor] = hand.optimizer.param_groups[0]["params"]
        learns = self._trains and all(isinstance(p, nn.Parameter) for p in trained)
        return learns and hand.passes >= PERIOD and hand.unmoved()


def _trains(program: Program, held: Set[int]) -> bool:
    own: Iterator[Tensor] = (p for part in program.parts for p in part.parameters())
    return any(id(p) in held for p in (*own, *program.parameters))


def _held_by(optimizer: Any) -> frozenset[int]:
    return frozenset(map(id, chain.from_iterable(group["params"] for group in optimizer.param_groups)))


def _leaves_of(roots: Sequence[Tensor]) -> list[Tensor]:
    """The tensors whose gradients a backward pass from here would add to."""
    waiting: list[Any] = [root.grad_fn for root in roots]
    seen, found = set(), []
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found += [node.variable] if type(node).__name__ == "AccumulateGrad" else []
        waiting += [before for before, _ in node.next_functions]
    return found


def _size(part: nn.Module) -> int:
    return sum(p.numel() for p in part.parameters())


def _name_of(model: nn.Module, program: Program) -> str:
    inner = getattr(model, "model", None)
    if isinstance(inner, nn.Module):
        return type(inner).__name__
    trained = [part for part in getattr(model, "parts", ()) if any(p.requires_grad for p in part.parameters())]
    names = list(dict.fromkeys(type(part).__name__ for part in trained))
    return " and ".join(names[:3]) or "tensors"


def _restored(kind: Any, whole: Any) -> None:
    if whole is None:
        del kind.__call__
    else:
        kind.__call__ = whole
