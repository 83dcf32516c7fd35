"""What a watch knows of a run, as the chart that ailments are judged by: optimiser, history, events, weights at the start."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._chart import Chart, Moment
from theodolite.ailments._fit import Fit, fit_of
from theodolite.core.state import untouched
from theodolite.io.batches import Batch, Batches


class OptimizerEvents:
    """Counts steps of an optimiser, and those after which the gradient was not cleared before the next was added to it.

    One parameter tells: when a gradient arrives while ``.grad`` is still the tensor of the last step, neither replaced nor
    written to nor zero, it was kept. Only what is really accumulated counts, not gradients that are asked for. Nothing is
    changed; `remove` takes the hooks away.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.steps = self.kept = 0
        self._used: tuple[weakref.ref[Tensor], int] | None = None
        self._suspect = False
        held = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad and p.is_leaf]
        self._handles: list[Any] = [optimizer.register_step_post_hook(self._stepped)]
        self._parameter = held[-1] if held else None
        if self._parameter is not None:
            self._handles.append(self._parameter.register_hook(self._arrives))
            self._handles.append(self._parameter.register_post_accumulate_grad_hook(self._arrived))

    def counts(self) -> Mapping[str, float]:
        """By the names under which a chart keeps them."""
        return {"optimizer steps": float(self.steps), "gradient kept": float(self.kept)}

    def remove(self) -> None:
        """Watch no longer."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _stepped(self, *_: Any) -> None:
        self.steps += 1
        gradient = None if self._parameter is None else self._parameter.grad
        self._used = None if gradient is None else (weakref.ref(gradient), gradient._version)

    def _arrives(self, _: Tensor) -> None:
        gradient = None if self._parameter is None else self._parameter.grad
        if self._used is None or gradient is None:
            self._suspect = False
            return
        last, version = self._used
        same = last() is gradient and gradient._version == version
        self._suspect = same and bool(gradient.any())  # zeros written through .data leave no trace but themselves

    def _arrived(self, _: Tensor) -> None:
        self.kept += self._suspect
        self._used, self._suspect = None, False


def optimizer_lr(optimizer: torch.optim.Optimizer) -> float:
    """The step size of the group that takes the largest steps."""
    return max((float(group["lr"]) for group in optimizer.param_groups), default=0.0)


def optimizer_momentum(optimizer: torch.optim.Optimizer) -> float:
    """The momentum of the first group; 0 where its kind has none of that name."""
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    return float(group.get("momentum", 0.0) or 0.0)


def held_out_batches(validation: Any, model: nn.Module, batch_size: int | None) -> tuple[Batch, ...]:
    """The validation data as batches on the model's device, read once."""
    if validation is None:
        return ()
    with untouched(None):
        return tuple(b.on(model) for b in Batches(validation, model, batch_size=batch_size or 256))


def scores_of(
    model: nn.Module, loss: Callable[[Any, Any], Tensor], probe: Sequence[Batch], held_out: Sequence[Batch]
) -> Mapping[str, float]:
    """Accuracy on the probe, loss and accuracy on held-out data, in evaluation mode; what cannot be told is left out."""
    with untouched(model), torch.no_grad():
        try:
            fit: Fit = fit_of(model, _answer, loss, probe, held_out)
        except (RuntimeError, TypeError, ValueError, IndexError):  # a probe the loss cannot be taken on: the look says so
            return {}
    found = {"accuracy": fit.training.accuracy}
    if fit.validation is not None:
        found |= {"validation_loss": fit.validation.loss, "validation_accuracy": fit.validation.accuracy}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _answer(model: nn.Module, batch: Batch) -> Any:
    answer = model(*batch.inputs, **batch.keywords)
    return answer["logits"] if isinstance(answer, Mapping) and "logits" in answer else answer


def chart_of(watch: Any, *, budget: float = 30.0) -> Chart:
    """The chart of a run: the watch's model as it is now, its probe as data, and all that the looks have told."""
    history = tuple(_moment(record) for record in watch.records)
    events = dict(watch.events.counts()) if watch.events is not None else {}
    # the probe is cut as training draws its batches; where that is not known, no ailment may judge their size
    events["batch size"] = float(watch.batch_size or math.nan)
    data = [(*b.inputs, b.target) if not b.keywords else b for b in watch.probe_batches]
    return Chart(
        model=watch.model,
        data=Batches(data, watch.model) if data else watch.subject.data,
        loss=watch.loss,
        optimizer=watch.optimizer,
        validation=watch.validation,
        origin=watch.origin,
        history=history,
        steps=max((moment.step for moment in history), default=None),
        events=events,
        budget=budget,
    )


def _moment(record: Any) -> Moment:
    facts = dict(record.facts)
    return Moment(
        record.step,
        facts.get("loss", math.nan),
        facts.get("validation_loss", math.nan),
        facts.get("accuracy", math.nan),
        facts.get("validation_accuracy", math.nan),
        math.nan if record.lr is None else record.lr,
        facts.get("gradient_norm", math.nan),
        facts,
    )
