"""The chart that ailments are judged by: what can be known of a model, its data and its training, each taken once when asked for.

Everything is measured on copies or put back; nothing of the user's is changed. A chart has a budget of seconds, and each
measurement takes what is left into account: fewer samples and steps make larger errors, never a longer wait.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from theodolite.ailments._common.weight_facts import WeightFacts, weight_facts
from theodolite.core.budget import Stopwatch
from theodolite.core.lazy_torch import is_tensor, torch
from theodolite.core.reading import Reading
from theodolite.core.state import untouched
from theodolite.io.weights import Weights, weights_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from theodolite.ailments._common.fit import Fit
    from theodolite.io.batches import Batch
    from theodolite.measure.dynamics.trial_runs import TrialRun
    from theodolite.measure.propagation.one_pass import VitalSigns

MOST_BATCHES, MOST_SAMPLES = 512, 4096
"""What is kept of the data for all measurements together."""

A_PASS, A_STEP, A_LOOK, LEAST_ROWS = 0.04, 0.01, 0.02, 8
"""Shares of the budget for a forward pass of all samples, for a step (three passes), and for a forward pass of those whose layers
are looked at (four passes in all); batches are made no smaller than so many samples."""


@dataclass(frozen=True)
class RunMoment:
    """One look of a run: what was told of it at that step; not a number where nothing was."""

    step: int
    loss: float = math.nan
    validation_loss: float = math.nan
    accuracy: float = math.nan
    validation_accuracy: float = math.nan
    lr: float = math.nan
    gradient_norm: float = math.nan
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class Chart:
    """A patient: ``model`` with ``data`` and ``loss`` (or ``weights`` alone), and what is known of its training.

    ``origin`` are the weights before training, ``history`` the looks of a run, ``steps`` how many steps were planned or made,
    ``facts`` what is known of each tensor already,
    ``events`` what a watch saw happen (such as ``"gradient kept"``, how often a gradient was not cleared between two steps).
    """

    model: nn.Module | None = None
    data: Any = None
    loss: Callable[[Any, Any], Tensor] | None = None
    optimizer: torch.optim.Optimizer | None = None
    validation: Any = None
    origin: Mapping[str, Tensor] | None = None
    weights: Weights = field(default_factory=dict)
    history: Sequence[RunMoment] = ()
    steps: int | None = None
    events: Mapping[str, float] = field(default_factory=dict)
    budget: float = 25.0
    facts: Mapping[str, WeightFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.began = Stopwatch()
        if self.model is not None and not self.weights:
            self.weights = weights_of(self.model)
        self._trials: dict[str, TrialRun | None] = {}
        self.price = 0.0  # seconds of a forward pass of one sample, once it is known
        self.thinned = False  # whether batches were made smaller, so that steps can be afforded

    def has(self, need: str) -> bool:
        """Whether this is known of the patient."""
        if need == "loss":
            return self.loss is not None and bool(self.batches) and self.batches[0].target is not None
        if need == "data":
            return self.model is not None and bool(self.batches)
        if need in ("weights", "history"):
            return bool(getattr(self, need))
        return getattr(self, need) is not None

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.budget - self.began.seconds

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """Some batches of the data, spread over what could be read in time, on the model's device."""
        return self._some(self.data)

    @cached_property
    def held_out(self) -> tuple[Batch, ...]:
        """Batches of the validation data."""
        return self._some(self.validation)

    def _some(self, data: Any) -> tuple[Batch, ...]:
        if data is None or self.model is None:
            return ()
        from theodolite.ailments._common.batching import first_rows, seconds_of_a_sample
        from theodolite.io.batches import Batches

        kept: list[Batch] = []
        model, samples = self.model, 0
        with untouched(None):
            for read in data if isinstance(data, Batches) else Batches(data, model, batch_size=64):
                batch = read.on(model)
                self.price = self.price or seconds_of_a_sample(lambda part: self.answer(model, part), model, batch)
                kept.append(first_rows(batch, max(LEAST_ROWS, self._affordable(A_STEP / 3))))
                self.thinned = self.thinned or len(kept[-1]) < len(batch)
                samples += len(kept[-1])
                most = min(MOST_SAMPLES, self._affordable(A_PASS))
                if len(kept) >= MOST_BATCHES or (samples >= most and len(kept) > 3) or self.left < 0.7 * self.budget:
                    break
        return tuple(kept)

    def _affordable(self, share: float) -> int:
        """How many samples can be passed through the model in that share of the budget."""
        return int(min(share * self.budget / self.price, MOST_SAMPLES)) if self.price > 0 else MOST_SAMPLES

    def answer(self, model: nn.Module, batch: Batch) -> Any:
        """What the model answers, and of an answer with named parts the logits."""
        answer = model(*batch.inputs, **batch.keywords)
        return answer["logits"] if isinstance(answer, Mapping) and "logits" in answer else answer

    def loss_on(self, model: nn.Module, batch: Batch) -> Tensor:
        """The user's loss of a model on a batch."""
        assert self.loss is not None, "an ailment that uses the loss must say so in its needs"
        return self.loss(self.answer(model, batch), batch.target)

    @cached_property
    def finite(self) -> bool:
        """Whether weights, inputs and targets are all finite; what follows is measured only then."""
        tensors = [t for batch in (*self.batches, *self.held_out) for t in (*batch.tensors(), batch.target)]
        own = [] if self.model is None else list(self.model.parameters())
        return all(bool(torch.isfinite(t).all()) for t in (*tensors, *own) if is_tensor(t) and t.is_floating_point())

    @cached_property
    def now(self) -> VitalSigns | None:
        """Every layer at the present weights, in training mode."""
        return self._signs(None)

    @cached_property
    def start(self) -> VitalSigns | None:
        """Every layer at the weights before training; the present ones where those are not known."""
        return self.now if self.origin is None else self._signs(self.origin)

    def _signs(self, weights: Mapping[str, Tensor] | None) -> VitalSigns | None:
        if self.model is None or not self.has("loss") or not self.finite:
            return None
        from theodolite.ailments._common.batching import joined
        from theodolite.measure.propagation.one_pass import vital_signs

        model, batch = self.model, joined(self.batches, max(2 * LEAST_ROWS, min(256, self._affordable(A_LOOK))))

        def loss_of() -> tuple[Tensor, Tensor]:
            answer = self.answer(model, batch)
            assert self.loss is not None
            return self.loss(answer, batch.target), _first(answer)

        try:
            with at_weights(model, weights), untouched(model, training=True):
                return vital_signs(model, loss_of)
        except (RuntimeError, TypeError, ValueError, IndexError):  # their own forward fails in training mode, say
            return None

    @cached_property
    def fit(self) -> Fit | None:
        """Loss and accuracy on training and held-out data in evaluation mode, beside the best constant answer."""
        if self.model is None or not self.has("loss") or not self.finite:
            return None
        from theodolite.ailments._common.fit import fit_of

        with untouched(self.model), torch.no_grad():
            return fit_of(self.model, self.answer, self.loss, self.batches, self.held_out)

    @cached_property
    def chance(self) -> float:
        """The loss of the best answer that does not look at its input."""
        assert self.loss is not None and self.model is not None
        from theodolite.ailments._common.fit import constant_loss

        return constant_loss(self.model, self.answer, self.loss, self.batches)

    def trial(
        self,
        what: str = "as it is",
        change: Callable[[nn.Module, torch.optim.Optimizer], None] | None = None,
        *,
        from_start: bool = True,
        loss: Callable[[nn.Module, Batch], Tensor] | None = None,
    ) -> TrialRun | None:
        """A short training on a copy, ``from_start`` (where the start is known) or from here, with one thing changed.

        None where there is no optimizer, nothing finite, or no time left. Each is made once and kept under its name.
        """
        if what not in self._trials:
            self._trials[what] = self._tried(change, from_start, loss or self.loss_on)
        return self._trials[what]

    def _tried(self, change: Any, from_start: bool, loss: Any) -> TrialRun | None:
        if self.model is None or self.optimizer is None or not self.has("loss") or self.left < 0.1 * self.budget:
            return None
        from theodolite.measure.dynamics.trial_runs import trial_run

        held_out = self.batches[::4]  # spread: data may lie in order
        training = [batch for i, batch in enumerate(self.batches) if i % 4] or self.batches
        weights = self.origin if from_start else None
        fresh = weights is not None

        def changed(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            if fresh:
                self.start_over(optimizer)
            if change is not None:
                change(model, optimizer)

        with at_weights(self.model, weights):
            try:
                return trial_run(
                    self.model,
                    self.optimizer,
                    loss,
                    training=training,
                    held_out=held_out,
                    change=changed,
                    most_seconds=min(self.budget / 10, self.left / 2),
                )
            except (RuntimeError, ValueError, TypeError, IndexError):
                return None

    @cached_property
    def largest_lr(self) -> float:
        """The largest step size that the run has used (a warm-up may not be over), else that of its schedule; 0: not known."""
        seen = [moment.lr for moment in self.history if moment.lr > 0]
        groups = [] if self.optimizer is None else self.optimizer.param_groups
        return max(seen) if len(seen) > 1 else max((_base(group) for group in groups), default=0.0)

    @cached_property
    def was_trained(self) -> bool:
        """Whether steps were taken with this model: looks, an optimizer's state or moved entries tell; or its loss."""
        if self.history or (self.optimizer is not None and self.optimizer.state):
            return True
        if self.model is not None:
            from theodolite.ailments._common.past import was_stepped

            if was_stepped(self.model):
                return True
        if self.fit is None:
            return any(facts.nan or facts.infinite for facts in self.weight_facts.values())
        return self.fit.training.loss < 0.9 * self.chance and not any(f.start for f in self.weight_facts.values())

    @cached_property
    def beginning(self) -> Mapping[str, Tensor] | None:
        """Where a trial of the whole training begins: the weights before it, else such as layers draw for themselves.

        None: at the present ones, of a model that was not trained yet.
        """
        return self.origin if self.origin is not None or not self.was_trained else drawn_anew(self.model)

    @cached_property
    def redrawn(self) -> Chart:
        """The same patient, taken for one whose training began at weights as its layers draw them."""
        other = copy.copy(self)
        other._trials = {}
        other.__dict__ |= {"was_trained": True, "beginning": drawn_anew(self.model)}
        return other

    def start_over(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer as at the start of the run, at the largest step of it: a schedule may have ended at nothing."""
        optimizer.state.clear()
        top = max((_base(group) for group in optimizer.param_groups), default=0.0)
        for group in optimizer.param_groups:
            group["lr"] = _base(group) * (self.largest_lr / top if top > 0 else 1.0)

    @cached_property
    def weight_facts(self) -> dict[str, WeightFacts]:
        """Every floating tensor by itself: finite or not, copies, tails, and whether it still is as it was drawn."""
        return weight_facts(self.weights, self.origin, self.facts)


def drawn_anew(model: nn.Module | None) -> dict[str, Tensor] | None:
    """The weights with which layers would begin that know how to draw their own; those of frozen ones are as they are."""
    if model is None:
        return None
    with untouched(None):
        copied = copy.deepcopy(model)
        torch.manual_seed(0)
        for module in copied.modules():
            draw = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if callable(draw) and all(p.requires_grad for p in module.parameters(recurse=False)):
                with suppress(TypeError):  # one that asks for something to draw by
                    draw()
    return copied.state_dict()


class at_weights:  # noqa: N801  used as a verb
    """The model at other weights for a while; the very same numbers are put back."""

    def __init__(self, model: nn.Module, weights: Mapping[str, Tensor] | None) -> None:
        self.model, self.weights = model, weights

    def __enter__(self) -> None:
        if self.weights is None:
            return
        state = self.model.state_dict()
        self.kept = {name: value.detach().clone() for name, value in state.items()}
        with torch.no_grad():
            for name, value in self.weights.items():
                if name in state and state[name].shape == value.shape:
                    state[name].copy_(value)

    def __exit__(self, *error: object) -> None:
        if self.weights is None:
            return
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                value.copy_(self.kept[name])


def _base(group: Mapping[str, Any]) -> float:
    """The step size that a group's schedule is a multiple of; the present one where there is none."""
    return float(group.get("initial_lr", group["lr"]))


def seen(quantity: str, measured: float, *, stderr: float = 0.0, where: str = "", meaning: str = "") -> Reading:
    """A number that a finding rests on."""
    return Reading(quantity=quantity, measured=measured, stderr=stderr, where=where, meaning=meaning)


def _first(answer: Any) -> Tensor:
    if is_tensor(answer):
        return answer
    members = answer.values() if isinstance(answer, Mapping) else answer
    return next(t for t in members if is_tensor(t))
