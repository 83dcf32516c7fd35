"""What a script does in vain: weights that are loaded and lost, layers made again, passes and terms of a loss that teach nothing.

Each is a fact of objects: nothing is computed with the user's model. What is found is put into ``silent``, by the names of facts
of a run.
"""

import itertools
import sys
import weakref
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.measure.dynamics._silent_facts import LEAST, entries_of, is_unrelated
from theodolite.verbs.running.tape import Constant, Made, Program
from theodolite.verbs.watching.training_hooks.between_steps import FEWEST
from theodolite.verbs.watching.training_hooks.stuck_batches import HALF

MATRICES, TERMS = 8, 32
"""Matrices of a checkpoint that are kept, and values of a term of a loss."""
SMOOTH = 0.6
"""Neumann's ratio of 32 independent values is 2 with an error of 2/sqrt(32): four errors below it."""
ADDED, SCALED = {"add", "radd", "iadd", "sub", "rsub", "isub"}, {"mul", "rmul", "imul", "truediv", "div"}
"""Operations between a loss and its terms."""


@dataclass
class Loaded:
    """Some entries of the matrices that a module was given by ``load_state_dict``."""

    module: Any  # a weak reference
    within: frozenset[int]
    given: Mapping[str, Tensor]


@dataclass
class Slips:
    """What was seen of them, by the names of facts."""

    silent: dict[str, tuple[str, ...]]
    batches: int = 0  # of the longest loader that was read
    _loads: list[Loaded] = field(default_factory=list)
    _strangers: list[list[Any]] = field(default_factory=list)
    _left_out: list[bool] = field(default_factory=list)
    _paired: list[bool] = field(default_factory=list)
    _terms: list[float] = field(default_factory=list)
    _none: tuple[int, int] | None = None

    # checkpoints

    def loads(self, module: nn.Module, state: Any) -> None:
        """A module takes a checkpoint: whether it is dropped in the very statement, and what it took."""
        within = frozenset(map(id, module.modules()))
        caller = sys._getframe(3)  # of the script, behind the two wrappers
        place, name = (caller.f_code, caller.f_lineno), type(module).__name__

        def dropped(_: Any) -> None:
            frame: Any = sys._getframe(1)
            if (frame.f_code, frame.f_lineno) == place:
                self.silent["checkpoint not loaded"] = (
                    f"The {name} that load_state_dict filled is dropped in the same line: nothing uses the weights that it read",
                    "keep it: model = Net(); model.load_state_dict(state)",
                )

        matrices = ((n, v) for n, v in state.items() if isinstance(v, Tensor) and v.ndim > 1 and v.is_floating_point())
        given = {n: entries_of(v) for n, v in itertools.islice(matrices, MATRICES) if v.numel() >= LEAST}
        self._loads = [own for own in self._loads if not own.within & within]
        self._loads.append(Loaded(weakref.ref(module, dropped), within, given))

    def steps(self) -> None:
        """A step is made: whether what was loaded before it has been overwritten."""
        loads, self._loads = self._loads, []
        for own in loads:
            if (module := own.module()) is None or not own.given:
                continue
            now = {name: p for name, p in module.named_parameters() if name in own.given}
            if len(now) == len(own.given) and all(is_unrelated(entries_of(now[n]), own.given[n]) for n in now):
                self.silent["checkpoint not loaded"] = (
                    f"The weights that load_state_dict gave {type(module).__name__} were overwritten before the next step: "
                    "nothing is left of them",
                    "initialize first, model.apply(...), and load after it",
                )

    # loaders

    def reads(self, loader: Any) -> None:
        """A loader is begun: how many batches it has, and whether it has none although there are samples."""
        if isinstance(loader.dataset, torch.utils.data.IterableDataset):
            return
        self.batches = max(self.batches, len(loader))
        if not len(loader) and len(loader.dataset):
            self._none = len(loader.dataset), getattr(loader, "batch_size", None) or 0

    def without_steps(self) -> None:
        """The script made no step at all: whether its loader is why."""
        if self._none is not None:
            samples, size = self._none
            self.silent["step without effect"] = (
                f"Nothing is trained: the loader has no batch, since its {samples:,} samples are fewer than batch_size={size:,} "
                "and drop_last=True",
                "a smaller batch_size, or drop_last=False",
            )

    def cycles(self, schedule: Any, steps: int) -> None:
        """A cosine that is stepped by batches: whether it is over in less than an epoch, and rises again."""
        length = getattr(schedule, "T_max", 0)
        if 0 < length < self.batches and schedule.last_epoch > max(2 * length, HALF * steps):
            self.silent["schedule ended"] = (
                f"{type(schedule).__name__} reaches its end after {length:,} steps, and an epoch has {self.batches:,}: the "
                f"learning rate has gone down and up again {schedule.last_epoch // (2 * length):,} times",
            )

    # passes

    def pulls(self, leaves: Iterable[Tensor], known: AbstractSet[int]) -> None:
        """The leaves that a backward pass reaches: whether parameters are made again each time, and held by no optimizer."""
        new = [p for p in leaves if isinstance(p, nn.Parameter) and id(p) not in known]
        gone = sum(bool(made) and all(one() is None for one in made) for made in self._strangers)
        self._strangers.append([weakref.ref(p) for p in new])
        if new and gone >= FEWEST:
            shapes = " and ".join(str(tuple(p.shape)) for p in new[:4])
            self.silent["layer made in forward"] = f"{len(self._strangers)}", shapes

    def left_out(self, unused: int) -> None:
        """A step is made: how many passes in training mode led to no loss, beside those like them that did."""
        self._left_out.append(unused >= FEWEST)
        count, of = sum(self._left_out), len(self._left_out)
        if count >= max(FEWEST, HALF * of):
            self.silent["gradient cleared"] = (
                f"{count:,}",
                f"{of:,}",
                f"used the last of several batches alone: backward was not called for the others ({unused:,} in the last step)",
                "loss.backward() and optimizer.step() inside the loop over batches",
            )

    def reaches(self, program: Program) -> None:
        """A loss is known: whether two views in it are one, and a term that changes with the weights has no gradient.

        Terms of the batches alone, as constants of a likelihood, are independent from step to step; weights change smoothly.
        """
        self._paired.append(_of_copies(program))
        if sum(self._paired) >= max(FEWEST, HALF * len(self._paired)):
            self.silent["batch repeated"] = (
                f"In {sum(self._paired):,} of {len(self._paired):,} steps the loss compares two copies of one batch",
                "draw each view by itself: augment(x), augment(x)",
            )
        term = constant_term(program)
        if term is None or len(self._terms) >= TERMS:
            return
        self._terms.append(term)
        if len(self._terms) == TERMS:
            values = torch.tensor(self._terms, dtype=torch.float64)
            spread, rough = float((values - values.mean()).square().sum()), float(values.diff().square().sum())
            if 0 < spread < float("inf") and rough < SMOOTH * spread:
                self.silent["term without gradient"] = f"{self._terms[0]:.3g}", f"{self._terms[-1]:.3g}", f"{TERMS}"


def _of_copies(program: Program) -> bool:
    """Whether a module without active dropout is called on two tensors that hold the same numbers."""
    given = [
        (call.part, slot.number)
        for call in program.calls
        if call.part >= 0
        for slot in call.args[:1]
        if isinstance(slot, Constant)
    ]
    return any(
        a != b and part == other and torch.equal(program.constants[a], program.constants[b])
        for (part, a), (other, b) in itertools.combinations(given[:8], 2)
        if not any(
            m.training and m.p for m in program.parts[part].modules() if isinstance(m, nn.modules.dropout._DropoutNd)
        )
    )


def constant_term(program: Program) -> float | None:
    """The sum of the terms of a loss that carry no gradient, up to factors; None where it has none."""
    waiting: list[tuple[Made, float]] = [(program.root, 1.0)]
    found: list[float] = []
    while waiting:
        made, factor = waiting.pop()
        call = program.calls[made.call]
        name, given = call.name.strip("_"), [*call.args, *call.keywords.values()]
        numbers = [_number(value, program.constants) for value in given]
        if name in ADDED and len(given) == 2:
            signs = (1.0, 1.0) if "add" in name else (-1.0, 1.0) if name == "rsub" else (1.0, -1.0)
            for value, number, sign in zip(given, numbers, signs, strict=True):
                waiting += [(value, sign * factor)] if isinstance(value, Made) else []
                found += [sign * factor * number] if number is not None else []
        elif name in SCALED and len(given) == 2 and isinstance(given[0], Made) and numbers[1]:
            waiting.append((given[0], factor * numbers[1] if "mul" in name else factor / numbers[1]))
    return sum(found) if found else None


def _number(value: Any, constants: Sequence[Tensor]) -> float | None:
    if isinstance(value, Constant):
        value = constants[value.number]
        return float(value) if value.numel() == 1 else None
    return float(value) if isinstance(value, int | float) else None
