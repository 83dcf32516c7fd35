"""One look at a model in training: what is measured in it once and shared, and what is carried from look to look."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from theodolite.core.subject import Subject
from theodolite.instruments._common.classes import classes_of
from theodolite.io.batches import Batches, as_given
from theodolite.io.overlapped_work import memory_given_back
from theodolite.measure import batch_statistics, normalizes_batches
from theodolite.measure.curvature import (
    Eigenpairs,
    Operator,
    Symmetric,
    extreme_eigenpairs,
    hessian_again,
    hessian_by_differences,
)
from theodolite.measure.curvature.edge_side import (
    largest_beside,  # not through the package's door, which holds arguments
)
from theodolite.measure.curvature.hessians import OnceDifferentiableError
from theodolite.measure.dynamics import (
    Slope,
    UpdateEffect,
    UpdateRule,
    gain_roots,
    preconditioned,
    probe_slope,
    update_effect,
    update_rule,
)
from theodolite.theory.dynamics import step_size_edge, update_edge
from theodolite.verbs.watching.training_hooks.training import Training, bytes_of, most_bytes, room_beside

if TYPE_CHECKING:
    from theodolite.theory.dynamics.stationarity import Sampler

Level = Literal["cheap", "standard", "full"]
LEVELS: tuple[Level, ...] = ("cheap", "standard", "full")
WARM, COLD, CLOSE = 5, 60, 0.05
"""Products with the Hessian at a look that knows the last eigenvector, at most otherwise; error that asks for more."""

LARGE, FEW = 1 << 20, 2
"""Parameters from which on the search ends once it can tell the side of the edge, and products of a look then."""

ROWS, VECTORS = 2, 9
"""Vectors as long as the parameters in the basis of a search for an eigenvalue, and in all that it keeps: roots, products and
slopes too."""

MICRO_WORK = 1 << 29
"""Parameters times samples of one batch of the Hessian in a large model: its graph is that of a second derivative."""

LEAST_MEMORY = 1 << 28
"""Bytes that a look may take beside training, however small the model."""

BESIDE, MOST_TOP = 5, 30
"""Eigenvalues looked at beyond the number of classes, and the most of them."""


@dataclass(frozen=True)
class Batching:
    """How training draws its batches: needed for the balance of noise and pull."""

    size: int | None = None
    samples: int | None = None
    sampler: Sampler = "without replacement"


@dataclass
class Carried:
    """What a watch carries from look to look; all of it can be lost but the origin."""

    origin: Mapping[str, Tensor] = field(repr=False)
    kernel: Tensor | None = None
    telling: float = 0.0
    projected: Tensor | None = field(default=None, repr=False)
    thinned: Tensor | None = field(default=None, repr=False)
    entries: Mapping[str, Tensor] | None = field(default=None, repr=False)
    ways: dict[str, Tensor] = field(default_factory=dict, repr=False)
    vectors: Tensor | None = field(default=None, repr=False)
    known: dict[str, Any] = field(default_factory=dict, repr=False)
    sample_bytes: float | None = None
    most_bytes: int = 0
    after_look: int = 0
    center: Tensor | None = field(default=None, repr=False)
    settling: int = 0
    window: list[tuple[float, float, float]] = field(default_factory=list)

    def note_memory(self, most: int) -> None:
        """Training's own peak, from the most that was allocated so far: one that no whole look has made.

        In the first look it is called again behind the gradient on the probe, which is as much as is known before a step.
        """
        if most > self.after_look:
            self.most_bytes = most

    def forget_window(self) -> None:
        """Begin the search for stationarity anew."""
        self.center, self.settling, self.window = None, 0, []


@dataclass
class LookContext:
    """One look: the subject at its present weights with the present step size, and what was measured so far in it.

    ``bare``: it is thinned to forward passes, and no gradient is taken. ``products`` with the Hessian were made in it.
    """

    subject: Subject
    carried: Carried
    level: Level
    batching: Batching
    training: Training = field(default_factory=Training)
    facts: dict[str, float] = field(default_factory=dict)
    bare: bool = False
    products: int = 0

    @property
    def model(self) -> nn.Module:
        """The model at its present weights."""
        return self.subject.model

    @property
    def loss(self) -> Callable[[Any, Any], Tensor]:
        """The loss of training."""
        return self.subject.loss

    @contextlib.contextmanager
    def stepping(self) -> Iterator[None]:
        """As a step sees the model: batch normalization by the batch's own statistics; nothing is changed by it."""
        with batch_statistics(self.model) if self.normalized else contextlib.nullcontext():
            yield

    @cached_property
    def normalized(self) -> bool:
        """Whether the step sees another function than evaluation: batch normalization, and batches of more than one."""
        return normalizes_batches(self.model) and all(len(batch) > 1 for batch in self.subject.data)

    @cached_property
    def effect(self) -> UpdateEffect:
        """What the last step did to the loss of the probe, and the gradient there before it."""
        with self.stepping():
            batches = tuple(self.subject.batches())
            return update_effect(self.model, self.loss, batches, before=self.training.before)

    @cached_property
    def one_back(self) -> bool:
        """Whether the gradient is that of the weights before the last step, which the step's effect tells at no other price."""
        return self.level != "full" and bool(self.training.before)

    @cached_property
    def slope(self) -> Slope:
        """Loss on the probe, as a step sees it, and its gradient: that of the last step's start where that is known."""
        if self.one_back:
            return Slope(self.effect.loss, self.effect.slopes)
        with self.stepping():
            return probe_slope(self.model, self.loss, self.subject.data)

    def forget_gradient(self) -> None:
        """Give its memory back, where nothing later in the look needs it."""
        if self.level != "full" and not self.bare:
            self.__dict__["slope"] = replace(self.slope, parts=())
            if "effect" in self.__dict__:
                self.__dict__["effect"] = replace(self.effect, slopes=())

    @cached_property
    def memory(self) -> int:
        """Bytes that graphs, and again the basis of a search, may take: together about what training keeps for the model."""
        return max(LEAST_MEMORY, bytes_of(self.model, self.training.optimizer) // 2)

    @cached_property
    def rule(self) -> UpdateRule | None:
        """What the optimizer does with a gradient now; None where none was told."""
        if self.training.optimizer is None:
            return None
        return update_rule(self.training.optimizer, self.model)

    @cached_property
    def edge(self) -> float | None:
        """The curvature that steps bear: the optimizer's own edge, or that of descent with the step told; None: not known."""
        rule = self.rule
        if rule is None:
            lr = self.subject.lr
            return None if lr is None else step_size_edge(lr, momentum=self.subject.momentum)
        if rule.kind is None:
            return None
        return update_edge(rule.lr, momentum=rule.momentum, kind=rule.kind, decay=rule.decay)

    @cached_property
    def operator(self) -> Operator:
        """The Hessian on the probe, as a step sees it, in batches whose graphs fit into `memory`."""
        return self._hessian()

    def _hessian(self, roots: Mapping[str, Tensor] | None = None) -> Operator:
        data, carried = self.subject.data, self.carried
        parameters = sum(p.numel() for p in self.model.parameters())
        most = carried.most_bytes or most_bytes(self.model)
        left = room_beside(self.model, most, VECTORS * 4 * parameters)
        memory = max(self.memory, int(left)) if math.isfinite(left) else self.memory
        if parameters >= LARGE and not self.normalized:
            size = max(1, MICRO_WORK // parameters)
            parts = [b.picked(rows) for b in self.subject.batches() for rows in torch.split(torch.arange(len(b)), size)]
            data = Batches(as_given(parts), self.model)
        with self.stepping():
            found = hessian_again(
                self.model, self.loss, data, memory=memory, sample_bytes=carried.sample_bytes, roots=roots
            )
        carried.sample_bytes = found.sample_bytes
        return found

    @cached_property
    def seen_curvature(self) -> Symmetric:
        """The Hessian as the optimizer sees it: divided on both sides by the root of its preconditioner."""
        rule = self.rule
        if rule is None or rule.kind is None or not self.scaled:
            return self.operator
        if self.level == "full" or rule.penalty or not self.operator_is_large:
            return preconditioned(self.operator, rule)
        roots = gain_roots(rule, {n: p for n, p in self.model.named_parameters() if p.requires_grad})
        self.__dict__["rule"] = replace(rule, gains={})
        return self._hessian(roots)  # scaled within: a vector less is held than if it were scaled before

    @cached_property
    def scaled(self) -> bool:
        """Whether the optimizer sees another curvature than the Hessian's."""
        rule = self.rule
        return rule is not None and rule.kind is not None and not (rule.plain and not rule.penalty)

    @property
    def operator_is_large(self) -> bool:
        """Whether vectors as long as the parameters count, in the memory of a processor."""
        own = list(self.model.parameters())
        return sum(p.numel() for p in own) >= LARGE and own[0].device.type == "cpu"

    @cached_property
    def classes(self) -> int | None:
        """How many classes the targets are of, where they are classes."""
        return classes_of(self.subject)

    @cached_property
    def top(self) -> Eigenpairs:
        """The largest eigenvalue, at level full also some more than there are classes; begun from those of the last look."""
        count = 1
        if self.level == "full":
            count = max(1, min((self.classes or 1) + BESIDE, MOST_TOP, self.operator.size // 2))
        self.give_back()
        with self.stepping():
            try:
                found = self._searched(count)
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, OnceDifferentiableError):  # an operation that can be differentiated once
                found = self._by_differences(count)
        self.products = found.products
        few = len(found.vectors) == 1 and self.operator_is_large
        # to begin from, three digits are enough
        self.carried.vectors = found.vectors.bfloat16() if few else found.vectors
        if self.level != "full":
            for name in ("operator", "seen_curvature"):
                self.__dict__.pop(name, None)  # its graph is large, and nothing later in the look asks for it
        self.give_back()
        return found

    def give_back(self) -> None:
        """What was freed in pieces, before vectors are taken that are as long as the model."""
        if self.operator_is_large:
            memory_given_back()

    def _searched(self, count: int) -> Eigenpairs:
        operator, edge, _ = self.seen_curvature, self.edge, self.scaled
        if count == 1 and self.rule is not None:  # what it does to each parameter is in the operator now
            self.__dict__["rule"] = replace(self.rule, gains={})
        self.give_back()
        again = self.carried.vectors is not None
        if count == 1 and operator.size >= LARGE:
            most, memory = FEW if again else 4 * FEW, ROWS * 4 * operator.size
            return largest_beside(operator, edge or math.inf, most=most, start=self._last_vector(), memory=memory)
        few, most = (WARM, COLD) if count == 1 else (3 * count, 6 * count + COLD)
        found = extreme_eigenpairs(
            operator, count=count, tolerance=1e-3, most=few if again else most, start=self._last_vector()
        )
        if again and found.errors[0] > CLOSE * abs(found.values[0]):
            found = extreme_eigenpairs(operator, count=count, tolerance=1e-3, most=most, start=found.vectors.sum(0))
        return found

    def _by_differences(self, count: int) -> Eigenpairs:
        """From differences of gradients, where a second backward pass cannot be had; what these miss is in the error."""
        operator = hessian_by_differences(self.model, self.loss, self.subject.data)
        rule = update_rule(self.training.optimizer, self.model) if self.scaled and self.training.optimizer else None
        every = (operator, operator.again(0.5), operator.again(2.0))
        seen: list[Symmetric] = [each if rule is None else preconditioned(each, rule) for each in every]
        found = extreme_eigenpairs(seen[0], count=count, tolerance=1e-3, most=3 * count + COLD // 2)
        values = [float(found.vectors[0] @ each(found.vectors[0])) for each in seen]
        self.facts["by_differences"] = 1.0
        errors = (found.errors[0] + max(values) - min(values), *found.errors[1:])
        return replace(found, errors=errors, vectors=found.vectors.float())

    def _last_vector(self) -> Tensor | None:
        """What the search begins from, that of the last look, which is held no longer: it may be as long as the model."""
        last, self.carried.vectors = self.carried.vectors, None
        return None if last is None else last.sum(0) if len(last) > 1 else last[0]
