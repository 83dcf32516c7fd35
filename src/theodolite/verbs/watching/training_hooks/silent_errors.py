"""Exact facts of each step that no training should show, for nearly nothing: flags, counters and a few entries of tensors.

Between looks nothing is read off a device: what has to be compared is kept there, and compared at a look.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.ailment import few_of
from theodolite.io.batches import Batch
from theodolite.measure.dynamics._silent_facts import (
    configured_ties,
    drops_always,
    freeze_ignored,
    generator_shared,
    layers_of_training,
    not_finite,
    parameters_replaced,
    parted_copies,
    state_rounded,
    tied_names,
)
from theodolite.verbs.watching.training_hooks.between_steps import BetweenSteps
from theodolite.verbs.watching.training_hooks.harmless_hooks import harmless
from theodolite.verbs.watching.training_hooks.stuck_batches import HALF, inputs_stuck, is_one_row, stuck, targets_stuck

SMALL, ENTRIES = 4096, 64
"""Entries of the largest gradient that is read, and entries of a mark."""
FIRST, STRETCH, PERIOD = 32, 8, 256
"""Tensors are marked and read in the first steps and then in a stretch of each period: in between only flags are looked at."""
FEWEST, SHARE, KEPT = 3, 0.2, 64
"""Steps, and their share of all, from which on a fact is no accident of a loop's first ones; marks of batches that are kept."""
READ = 4
"""Of the steps near the start one in so many, at which whole gradients are read."""
EVALUATED = 3
"""Passes without gradients in a row, between two steps, that are an evaluation."""
ROUNDED = torch.finfo(torch.float32).eps
"""The share of the largest step size that is as good as none."""
ANEW = "create the optimizer from the model that is trained, after its last change: optimizer = ...(model.parameters())"
NO_STEP, REACHED = (
    "Nothing is trained: {0:,} backward passes and no optimizer step",
    "optimizer.step() after loss.backward(), outside of conditions",
)
NO_CHANGE, IN_PLACE = (
    "Nothing is trained: {0:,} backward passes, no optimizer, and no weight has changed",
    "change the weights in place, p -= lr * p.grad under torch.no_grad(), or use torch.optim.SGD",
)
"""What is said where there are no steps."""
NO_GRADIENT, BACKWARD = (
    "Nothing is trained: {0} of {1} steps found no gradient on any parameter",
    "loss.backward() before optimizer.step(), on a loss made of the output of the model that the optimizer holds, no detach()",
)
CLEARED = "had no gradient: it was cleared between loss.backward() and optimizer.step()"
ONLY_LAST = "used the gradient of the last of several batches alone: it was cleared after each of the others"
UNHELD = "set p.grad = None for them, or create the optimizer from [p for p in model.parameters() if p.requires_grad]"
ONCE = "optimizer.zero_grad() once per step, right after optimizer.step()"
SHARED = "sampler=torch.utils.data.DistributedSampler(dataset), or different data on each rank"
BY_INDEX = "use the index: __getitem__(self, index) must return the sample of that index"
DIGESTS = (1, 4, 16, 64, 256, 1024)
"""Steps at which every process leaves a digest of its weights; every 1,024 after that."""


class SilentErrors:
    """What was seen of the steps of one optimizer on one model."""

    def __init__(
        self, model: nn.Module, optimizer: Any, parts: Sequence[nn.Module] = (), *, stands_in: bool = False
    ) -> None:
        self.model, self.optimizer, self.idle = model, optimizer, False
        self.parts = tuple(parts) or (model,)
        self.steps = self.cleared = self.stale = self.zero_lr = self.ended = self.evaluating = 0
        self.evaluations = 0
        self.extra: dict[str, tuple[str, ...]] = {}
        self._acting = layers_of_training(model)
        self._layers = tuple(dict.fromkeys(type(layer).__name__ for layer in self._acting))
        self._drops = [layer for layer in self._acting if not isinstance(layer, nn.modules.batchnorm._BatchNorm)]
        self._drawn: Tensor | None = None
        self.redrawn = self.restarts = 0
        self._largest_lr = 0.0
        self.renewed = self._renewed_at = 0
        self._instead = self._first_of = (
            0  # steps of others in place of this one's, and how many were the first of another
        )
        self._other: Any = None
        self.repeats = False  # batches come again on purpose
        self._asked: deque[tuple[int, Tensor]] = deque(maxlen=KEPT)
        self._dropping: tuple[str, ...] | None = None
        self._arrivals = self._unlearned = self._seen_steps = 0
        self._pulled = self._few = False
        self._new = True
        self.empty = self.lost = self.alike = self.marked = 0
        self.stands_in = stands_in  # the optimizer stands for steps by hand or of sharded weights: it sees no gradients
        self.written = 0  # steps after which the gradient was written to
        self._stepped_on: list[tuple[weakref.ref[Tensor], int]] = []
        self._used: list[tuple[weakref.ref[Tensor], int]] = []
        self._alone = True  # no other optimizer has stepped since the last step
        self._fed: list[Tensor] = []  # marks of what was put in since the last step
        self.between: BetweenSteps | None = None
        self._fresh = 0  # passes of these whose gradient was not added to that of the one before
        self._last: tuple[weakref.ref[Tensor], int, Tensor | None] | None = None
        self._compared = 0
        self._still: Counter[str] = Counter()
        self._moved: set[str] = set()
        self._zeroed: dict[str, Tensor] | None = (
            None  # what had gradients of zero whenever they were read, as it was at first
        )
        self._rounded: list[tuple[float, str]] = []
        self._marks: deque[Tensor] = deque(maxlen=KEPT)
        self._seen: Tensor | None = None
        self._others: dict[int, tuple[Any, int]] = {}
        self._mine = False
        self._tied, self._parted = tied_names(model), parted_copies(model)
        self._digests: list[int] = []
        self._handles: list[Any] = []
        self._tracked: list[Any] = []
        self._felt: list[Any] = []
        self._frozen: dict[str, Tensor] = {}
        if optimizer is not None:
            self._hook(optimizer)

    def _hook(self, optimizer: Any) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        held = [p for group in optimizer.param_groups for p in group["params"]]
        leaves: list[Any] = [p for p in held if p.requires_grad and p.is_leaf]
        self._tracked = leaves[-1:]
        if leaves and all(p.device.type == "cpu" and not hasattr(p, "placements") for p in leaves):
            self.between = BetweenSteps(max(leaves, key=lambda p: p.numel()))
        self._handles = [optimizer.register_step_pre_hook(self._steps), register_optimizer_step_post_hook(self._anyone)]
        self._feel(True)

    def __deepcopy__(self, memo: dict[int, Any]) -> SilentErrors:
        """A copy of the model is no training of the user's: its hooks do nothing."""
        other = object.__new__(SilentErrors)
        other.idle = True
        return other

    def listen(self, model: nn.Module) -> None:
        """See the calls of the model itself."""
        self._handles.append(model.register_forward_pre_hook(self._runs, with_kwargs=True))

    def follow(self, optimizer: Any) -> None:
        """See the steps of another optimizer of the same parameters; how many had nothing but their first one."""
        self.renewed += self.steps - self._renewed_at <= 1 and len(self.optimizer.state) > 0
        if self.between is not None:
            self.between.forget()
        self.optimizer, self._renewed_at, self._largest_lr = optimizer, self.steps, 0.0

    def _feel(self, near: bool) -> None:
        """Whether the arrival of gradients is seen: between stretches there is no hook on it."""
        if near and not self._felt:
            self._felt = [p.register_post_accumulate_grad_hook(self._arrived) for p in self._tracked]
        elif not near and self._felt:
            for handle in self._felt:
                handle.remove()
            self._felt = []

    def remove(self) -> None:
        """Watch no longer."""
        self._feel(False)
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # at every step

    @harmless
    def _arrived(self, parameter: Tensor) -> None:
        self._arrivals += 1
        gradient = parameter.grad
        if gradient is None:
            return
        self._pulled = not _is_zero(gradient)  # a dead network has gradients of zero that nobody cleared
        same = self._last is not None and self._last[0]() is gradient
        moved = self._last is not None and self._last[1] != parameter._version
        self._fresh += 0 if same or moved else 1
        self._last = weakref.ref(gradient), parameter._version, _entries(gradient) if self._fresh > 1 else None

    @harmless
    def _steps(self, *_: Any) -> None:
        if self.idle:
            return
        self.steps += 1
        if self._unlearned >= EVALUATED:
            self.evaluations += self._unlearned
        self._unlearned, self._new = 0, True
        self.evaluating += not any(part.training for part in self.parts)
        if self.between is not None and not self.stands_in:
            self.between.before_step(alone=self._alone, near=_is_near(self.steps))
        if not _is_near(self.steps):
            if _is_near(self.steps + 1):
                self._feel(True)
            return
        self._seen_steps += 1
        self._feel(_is_near(self.steps + 1))
        if self.between is not None and self.steps % READ == 0 and self._zeroed != {}:
            self._note_zeroed()
        gradients = [p.grad for p in self._tracked]
        again, self._used = (
            self._are_used(gradients),
            [(weakref.ref(g), g._version) for g in gradients if g is not None],
        )
        gone = [g is None or (self._pulled and _is_zero(g)) for g in gradients]
        if self._arrivals and gone and all(gone):
            self.cleared += 1
        elif not self._arrivals and again:
            self.stale += 1
        elif (
            not self._arrivals
            and not self.stands_in
            and all(p.grad is None for g in self.optimizer.param_groups for p in g["params"])
        ):
            self.empty += 1
        elif self._alone and 1 < self._fresh == self._arrivals == self._different():
            self.lost += self._uses_last()
        self._arrivals, self._pulled, self._fresh, self._alone, self._last = 0, False, 0, True, None
        self._fed = []
        lr = max((float(group.get("lr", 1.0)) for group in self.optimizer.param_groups), default=1.0)
        self._largest_lr = max(lr, self._largest_lr)
        self.zero_lr += self._largest_lr == 0
        self.ended += 0 <= lr <= ROUNDED * self._largest_lr > 0

    def _note_zeroed(self) -> None:
        """The parameters all of whose gradient is zero, now and whenever it was read before."""
        held = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        now = {
            name: p
            for name, p in self.model.named_parameters()
            if id(p) in held and p.grad is not None and not p.grad.is_sparse and not bool(p.grad.any())
        }
        known = {name: _mark(p) for name, p in now.items()} if self._zeroed is None else self._zeroed
        self._zeroed = {name: at for name, at in known.items() if name in now}

    def _are_used(self, gradients: Sequence[Tensor | None]) -> bool:
        """Whether these are the very gradients of the step before: those that a script sets itself are others."""
        pairs = zip(self._used, [g for g in gradients if g is not None], strict=False)
        return bool(self._used) and all(last() is g and version == g._version for (last, version), g in pairs)

    @harmless
    def after_step(self) -> None:
        """The loop has made a step: whether it wrote to the gradient since then, and left it there, as clipping does."""
        before, self._stepped_on = self._stepped_on, []
        if self._arrivals or self.idle or self.stands_in:
            return
        for last, version in before:
            gradient = last()
            if gradient is not None and gradient._version != version and gradient.numel() <= SMALL:
                self.written += gradient.device.type == "cpu" and not _is_zero(gradient)

    def _uses_last(self) -> bool:
        """Whether the gradient of this step is that of the last pass, or a part of it by clipping."""
        gradient, _, arrived = self._last or (lambda: None, 0, None)
        if (now := gradient()) is None or arrived is None:
            return False
        used, length = _entries(now), float(arrived.norm())
        return length > 0 and float(used @ arrived) >= (1 - 1e-6) * float(used.norm()) * length > 0

    @harmless
    def _anyone(self, optimizer: Any, *_: Any) -> None:
        if optimizer is self.optimizer:
            self._mine = True
            if self.between is not None and not self.idle:
                self.between.after_step()
            if _is_near(self.steps) and not self.idle:
                self._stepped_on = [(weakref.ref(p.grad), p.grad._version) for p in self._tracked if p.grad is not None]
            if (self.steps in DIGESTS or self.steps % DIGESTS[-1] == 0) and not self.idle:
                self._leave_digest()
            return
        if self.idle:
            return
        if not self.steps and any(
            p is own for own in self._tracked for g in optimizer.param_groups for p in g["params"]
        ):
            self._instead += 1
            self._first_of += (self._other is None or self._other() is not optimizer) and len(optimizer.state) > 0
            self._other = weakref.ref(optimizer)
        self._alone = False
        if self._mine:
            self._mine = False
            _, turns = self._others.get(id(optimizer), (None, 0))
            self._others[id(optimizer)] = weakref.ref(optimizer), turns + 1

    @harmless
    def _runs(self, module: nn.Module, args: Any, keywords: Any) -> None:
        if not self.idle and not torch.compiler.is_compiling():
            self.saw_call(module, (*args, *keywords.values()))

    def saw_call(self, module: nn.Module, inputs: Iterable[Any]) -> None:
        """The model is called: in training once a step its inputs are marked; without gradients its mode tells."""
        graded = torch.is_grad_enabled()
        if self.idle or (graded and not _is_near(self.steps)):
            return
        if not graded and not any(layer.training for layer in self._acting):
            return
        given = [value for value in inputs if isinstance(value, Tensor) and value.ndim and not value.is_sparse]
        if not given:
            return
        first = given[0]
        if graded:
            if len(self._fed) < KEPT and not first.requires_grad:  # one that does is looked for, as an adversary does
                self._fed.append(_mark(first))
            if not self._new:
                return
            self._new = False
            if self.steps % PERIOD == 0:
                self._count_batches()
                self._marks.clear()  # a new stretch
            self._marks.append(self._fed[-1] if self._fed else _mark(first))
            self.marked += 1
            if first.device.type == "cpu":
                self.alike += all(map(is_one_row, given))
                if any(layer.training for layer in self._drops):
                    last, self._drawn = self._drawn, torch.get_rng_state()
                    self.redrawn += last is not None and torch.equal(last, self._drawn)
        else:
            mark = _mark(first)
            self._unlearned += self._seen is None or mark.shape != self._seen.shape or not torch.equal(mark, self._seen)
            self._seen = mark
            self._asked.append((self.steps, mark))

    def _different(self) -> int:
        """How many different inputs were put in since the last step."""
        return len({tuple(mark.tolist()) for mark in self._fed})

    def _count_batches(self) -> None:
        """Whether a batch came back after others within the first steps."""
        if self.steps <= PERIOD:
            turns = len(self._marks) - sum(self._pairs())
            self._few = len({tuple(mark.tolist()) for mark in self._marks}) < turns

    # at a look

    @torch.no_grad()
    def compare(self, before: Mapping[str, Tensor], pulls: Mapping[str, Tensor]) -> None:
        """The weights before the last step beside the present ones: what had a gradient, the largest entry of it, and stays."""
        if not before or self.optimizer is None:
            return
        rates = {id(p): float(group.get("lr", 0.0)) for group in self.optimizer.param_groups for p in group["params"]}
        seen, lost, total, kind = False, 0.0, 0.0, ""
        for name, parameter in self.model.named_parameters():
            lr, gradient = rates.get(id(parameter), 0.0), parameter.grad
            largest = pulls.get(name, gradient)
            if name not in before or not lr or largest is None or largest.is_sparse or hasattr(parameter, "placements"):
                continue
            seen = True
            same = before[name] == parameter
            if parameter.dtype.itemsize == 2 and gradient is not None:
                pulled = gradient != 0
                lost, total = lost + float((same & pulled).sum()), total + float(pulled.sum())
                kind = str(parameter.dtype).removeprefix("torch.")
            if not bool(same.all()):
                self._moved.add(name)
            elif lr * float(largest.abs().max()) > 1e-6 * float(parameter.abs().max()):
                self._still[name] += 1
        if total:
            self._rounded.append((lost / total, kind))
        self._compared += seen

    @harmless
    def facts(
        self, kept: Sequence[Any], lrs: Sequence[float], loader: Any = None, probe: Batch | None = None
    ) -> dict[str, tuple[str, ...]]:
        """Those that hold now, each with its words; ``kept`` are some of the last batches, ``lrs`` the step sizes at looks."""
        found = {**self._of_steps(), **self._of_weights(), **self.extra}
        if self._dropping is None and probe is not None:
            self._dropping = drops_always(self.model, probe)
        if self._dropping and "evaluated as trained" not in found:
            found["evaluated as trained"] = "all", f"{', '.join(self._dropping)} drops units even in evaluation mode"
        repeated = self._repeated() or inputs_stuck(kept) or self._one_row()
        found["batch repeated"] = repeated or found.get("batch repeated", ())
        found["targets stuck"] = targets_stuck(kept)
        found["workers alike"] = generator_shared(loader) or found.get("workers alike", ())
        rises = len(lrs) > 2 and all(b > a for a, b in pairwise(lrs))
        if rises and lrs[-1] > 1.05 * lrs[-2]:
            found["lr still rising"] = (f"{lrs[0]:.3g}", f"{lrs[-1]:.3g}", f"{self.steps:,}")
        self._others = {}
        return {name: words for name, words in found.items() if words}

    def _of_steps(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}

        def often(name: str, count: int, *words: str) -> None:
            if count >= FEWEST and count >= SHARE * self._seen_steps:
                found[name] = (f"{count:,}", f"{self._seen_steps:,}", *words)

        often("gradient cleared", self.lost, ONLY_LAST, ONCE)
        if self.written >= max(FEWEST, HALF * self._seen_steps):
            found["clipped late"] = f"{self.written:,}", "after optimizer.step()"
        often("gradient cleared", self.cleared, CLEARED, ONCE)
        often("step without effect", self.empty)
        if self.renewed >= max(FEWEST, HALF * self.steps):
            found["optimizer renewed"] = f"{self.renewed:,}", f"{self.steps:,}"
        elif self._first_of >= max(FEWEST, HALF * self._instead):
            found["optimizer renewed"] = f"{self._first_of:,}", f"{self._instead:,}"
        if "step without effect" in found:
            found["step without effect"] = NO_GRADIENT.format(*found["step without effect"]), BACKWARD
        often("gradient stale", self.stale)
        often("draws repeated", self.redrawn, "steps", "dropout drops the same units every time")
        often("step size zero", self.zero_lr)
        often("schedule ended", self.ended)
        layers = ", ".join(self._layers)
        still = all(not module.training for part in self.parts for module in part.modules())
        if self._layers and still and self.evaluating >= max(FEWEST, SHARE * self.steps):
            found["trained as evaluated"] = (f"{self.evaluating:,}", f"{self.steps:,}", layers)
        evaluations = max(self.evaluations, self._asked_again() if len(self.parts) == 1 else 0)
        if evaluations:
            found["evaluated as trained"] = (f"{evaluations:,}", f"{layers} acted as in training")
        return found

    def _asked_again(self) -> int:
        """Passes without gradients in training mode on inputs that were asked before, with steps between: held-out data."""
        asked, found = list(self._asked), 0
        for place, (step, mark) in enumerate(asked):
            others = (own for at, own in asked[:place] if at < step and own.shape == mark.shape)
            found += any(torch.equal(own, mark) for own in others)
        return found + 1 if found else 0

    def _of_weights(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {"values not finite": not_finite(self.model)}
        stuck = tuple(
            name for name, count in self._still.items() if count == self._compared and name not in self._moved
        )
        if self._compared > 1 and stuck:
            still = (
                f"Nothing is trained: not one bit of the weights changed at {self._compared} compared steps, although "
                "there were gradients"
            )
            found["parameters stuck" if self._moved else "step without effect"] = (
                stuck if self._moved else (still, ANEW)
            )
        if not self.steps and self._arrivals >= PERIOD and not self._instead:
            found["step without effect"] = NO_STEP.format(self._arrivals), REACHED
        if not self.repeats and self.between is not None and (lost := self.between.lost()):
            found["step without effect"] = lost
        shares = [share for share, _ in self._rounded]
        if len(shares) > 1 and min(shares) > HALF:
            found["updates rounded away"] = (f"{min(shares):.0%}", self._rounded[-1][1])
            found.pop("parameters stuck", None)
        named = dict(self.model.named_parameters())
        found["frozen moves"] = self._frozen_moved(named)
        if self.steps >= FEWEST * READ:
            zeroed = [(n, at) for n, at in (self._zeroed or {}).items() if n in named]
            found["zeroed and moved"] = tuple(n for n, at in zeroed if not torch.equal(_mark(named[n]), at))
        apart = [own for own in self._tied if len({id(self._parameter(name)) for name in own}) > 1]
        found["weights untied"] = tuple(
            " and ".join(own) for own in (*apart, *self._parted, *configured_ties(self.parts))
        )
        if self.optimizer is not None:
            found["optimizer of another"] = parameters_replaced(self.model, self.optimizer)
            found["held twice"] = self._held_twice(named)
            found["state rounded away"] = state_rounded(self.optimizer)
        found |= self._ranks()
        return found

    def _frozen_moved(self, named: Mapping[str, Tensor]) -> tuple[str, ...]:
        """Parameters in a group that ask for no gradient and are others than when they were first seen so."""
        if self.optimizer is None:
            return ()
        held = {id(p): p for group in self.optimizer.param_groups for p in group["params"]}
        still = {name: p for name, p in named.items() if not p.requires_grad and id(p) in held}
        self._frozen = {name: self._frozen.get(name, _mark(p)) for name, p in still.items()}
        moved = [name for name, p in still.items() if not torch.equal(_mark(p), self._frozen[name])]
        frozen = f"The optimizer changes frozen parameters (requires_grad=False): {few_of(moved)}"
        return (frozen, UNHELD) if moved else freeze_ignored(self.model.modules(), held.values())

    def _parameter(self, name: str) -> Any:
        owner, _, last = name.rpartition(".")
        try:
            return getattr(self.model.get_submodule(owner), last, None)
        except AttributeError:
            return None

    def _held_twice(self, named: Mapping[str, Tensor]) -> tuple[str, ...]:
        own = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        others = [other() for other, turns in self._others.values() if turns >= FEWEST]
        twice = {id(p) for o in others if o is not None for group in o.param_groups for p in group["params"]} & own
        return tuple(name for name, p in named.items() if id(p) in twice)

    def _pairs(self) -> list[bool]:
        """Whether each of the last batches is the one before it."""
        return [a.shape == b.shape and bool(torch.equal(a, b)) for a, b in pairwise(self._marks)]

    def _repeated(self) -> tuple[str, ...]:
        """How many of the last steps had the batch of the step before, where there were others too.

        Where a batch comes back after others within the first steps there are few of them, and chance repeats them.
        """
        self._count_batches()
        pairs = self._pairs()
        least = 2 * FEWEST if self.steps > FIRST else FIRST // 2
        always = all(pairs) and self.restarts < len(pairs)  # all the data in every step, unless a loader has more
        if self.repeats or self._few or len(pairs) < least or always or sum(pairs) < 0.3 * len(pairs):
            return ()
        return stuck(sum(pairs), len(pairs))

    def _one_row(self) -> tuple[str, ...]:
        if self.alike < max(FEWEST, self.marked):
            return ()
        return f"All {self.alike} batches that were checked repeat one sample in every row", BY_INDEX

    # several processes

    def _leave_digest(self) -> None:
        """A digest of the weights where all processes can read it, without waiting for any of them."""
        store = shared_store()
        if store is None or any(hasattr(p, "placements") for p in self.model.parameters()):
            return
        total = sum(float(p.detach().double().sum()) for p in self.model.parameters())
        batch = self._marks[-1].tolist() if self._marks else ""
        store.set(f"theodolite/{self.steps}/{torch.distributed.get_rank()}", f"{float(total).hex()} {batch}")
        self._digests.append(self.steps)

    def _ranks(self) -> dict[str, tuple[str, ...]]:
        """Ranks whose weights are others than those of the first, and whether all of them train on the same batches."""
        store = shared_store()
        if store is None:
            return {}
        left = []
        for step in self._digests:
            keys = [f"theodolite/{step}/{rank}" for rank in range(torch.distributed.get_world_size())]
            if store.check(keys):
                left.append([store.get(key).partition(b" ") for key in keys])
        apart = (
            [str(rank) for rank, (weights, _, _) in enumerate(left[-1]) if weights != left[-1][0][0]] if left else []
        )
        shared = [bool(ranks[0][2]) and len({batch for _, _, batch in ranks}) == 1 for ranks in left]
        found = {"replicas differ": tuple(apart)}
        if len(shared) >= FEWEST and all(shared) and not apart:
            found["batch repeated"] = "All ranks train on the same batches, so more ranks bring nothing", SHARED
        return found


def _is_near(step: int) -> bool:
    """Whether tensors are marked and read at this step."""
    return step <= FIRST or step % PERIOD < STRETCH


def shared_store() -> Any:
    """Where the processes of a group leave words for each other; None where there is one process."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    if torch.distributed.get_world_size() < 2:
        return None
    return torch.distributed.distributed_c10d._get_default_store()


@torch.no_grad()
def _mark(tensor: Tensor) -> Tensor:
    """A few numbers that tell a tensor from others, on its device."""
    flat = tensor.detach().reshape(-1)
    few = flat[:: max(1, flat.numel() // ENTRIES)][:ENTRIES].double()
    return torch.cat([few, flat.sum(dtype=torch.float64).reshape(1)])


def _entries(gradient: Tensor) -> Tensor:
    return gradient.detach().reshape(-1)[:ENTRIES].double().clone()


def _is_zero(gradient: Tensor) -> bool:
    """Whether a small gradient in the memory of the host is zero; elsewhere it is not asked."""
    if (
        gradient.device.type != "cpu"
        or gradient.is_sparse
        or gradient.numel() > SMALL
        or hasattr(gradient, "placements")
    ):
        return False
    return not bool(gradient.any())
