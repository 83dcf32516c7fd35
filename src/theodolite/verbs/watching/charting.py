"""What a watch knows of a run, as the chart that ailments are judged by: optimizer, history, events, weights at the start."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, RunMoment
from theodolite.ailments._common.fit import fit_of
from theodolite.ailments._common.trials import with_lr
from theodolite.core.ailment import Finding
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.io.batches import Batch, Batches
from theodolite.verbs.watching.layers import layer_facts, starting_entries

if TYPE_CHECKING:
    from theodolite.verbs.watching.records import Record
    from theodolite.verbs.watching.scene import Scene
    from theodolite.verbs.watching.watch import Watch


class OptimizerEvents:
    """Counts steps of an optimizer, and those after which the gradient was not cleared before the next was added to it.

    ``passes`` is how many backward passes the last step was accumulated from.

    One parameter tells: when a gradient arrives while ``.grad`` is still the tensor of the last step, neither replaced nor
    written to nor zero, it was kept. Only what is really accumulated counts, not gradients that are asked for. Nothing is
    changed; `remove` takes the hooks away.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.steps = self.kept = self.passes = 0
        self._arrivals = 0
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
        self.passes, self._arrivals = self._arrivals, 0
        gradient = None if self._parameter is None else self._parameter.grad
        self._used = None if gradient is None else (weakref.ref(gradient), gradient._version)

    def _arrives(self, _: Tensor) -> None:
        self._suspect = False
        gradient: Tensor | None = None if self._parameter is None else self._parameter.grad
        if self._used is None or gradient is None:
            return
        last, version = self._used
        same = last() is gradient and int(gradient._version) == version
        self._suspect = same and bool(gradient.any())  # zeros written through .data leave no trace but themselves

    def _arrived(self, _: Tensor) -> None:
        self._arrivals += 1
        self.kept += self._suspect
        self._used, self._suspect = None, False


def optimizer_lr(optimizer: torch.optim.Optimizer) -> float:
    """The step size of the group that takes the largest steps; 0 where its groups tell none."""
    return max((float(group.get("lr", 0.0)) for group in optimizer.param_groups), default=0.0)


def optimizer_momentum(optimizer: torch.optim.Optimizer) -> float:
    """The momentum of the first group, of Adam its first beta; 0 where its kind has neither."""
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    betas = group.get("betas") or (0.0,)
    return float(group.get("momentum", betas[0]) or 0.0)


LARGEST_TRIED, LEAST_SECONDS, MOST_SECONDS, SHARE = 1 << 21, 3.0, 6.0, 0.1
"""Models of up to so many parameters have a remedy tried on copies while they train; for how long, and share of the training."""


def tried_step(watch: Watch, origin: Mapping[str, Tensor], finding: Finding) -> Finding:
    """The finding with a step that was tried out on copies, where one could be and did better; else as it is."""
    from theodolite import catalogue

    size = sum(p.numel() for p in watch.model.parameters())
    if watch.optimizer is None or size > LARGEST_TRIED:
        return finding
    seconds = min(MOST_SECONDS, max(LEAST_SECONDS, SHARE * watch.training_seconds))
    try:
        chart = chart_of(watch, origin, budget=seconds)
        tried = next(iter(catalogue.ailment("step-too-large").judge(chart)), None)
        lr = _largest_calm(chart) if tried is None else tried.suggested["lr"]
    except Exception:  # whatever fails on copies, training goes on
        return finding
    if lr is None:
        return finding
    return replace(finding, remedy=f"lr at most {lr:g} (tried on a copy)", suggested={"lr": lr})


CALM, FALLS = 1.2, 0.98
"""A trial is calm whose loss is never above this multiple of its start, and ends below that one."""


def _largest_calm(chart: Chart) -> float | None:
    """The largest of some smaller steps with which a short training from the start comes down without a jump."""
    for factor in (0.1, 0.03, 0.01, 1e-3, 1e-4):
        run = chart.trial(f"alarm: lr x {factor:g}", with_lr(factor))
        if run is not None and run.after < FALLS * run.before and max(run.losses) < CALM * run.losses[0]:
            return float(f"{factor * chart.largest_lr:.2g}")
    return None


def held_out_batches(validation: Any, model: nn.Module) -> tuple[Batch, ...]:
    """The validation data as batches on the model's device, read once."""
    if validation is None:
        return ()
    with untouched(None):
        return tuple(batch.on(model) for batch in Batches(validation, model))


def facts_beside(scene: Scene, held_out: Sequence[Batch]) -> dict[str, float]:
    """What each look notes beside its readings: accuracy and held-out loss, and each layer's gradient and way so far."""
    assert scene.subject.model is not None
    carried = scene.carried
    if carried.entries is None:
        carried.entries = starting_entries(scene.subject.model, carried.origin)
    slopes = None if scene.bare else scene.slope.parts
    layers = layer_facts(scene.subject.model, slopes, carried.entries, carried.ways)
    return {**scores_of(scene.subject, held_out), **layers}


def scores_of(subject: Subject, held_out: Sequence[Batch]) -> Mapping[str, float]:
    """Loss and accuracy on held-out data and accuracy on the probe, in evaluation mode; what cannot be told is left out."""
    model, loss = subject.model, subject.loss
    if model is None or loss is None or not held_out:
        return {}
    probe = [batch.on(model) for batch in subject.data]
    with untouched(model), torch.no_grad():
        fit = fit_of(model, _answer, loss, probe, held_out)
    found = {"accuracy": fit.training.accuracy}
    if fit.validation is not None:
        found |= {"validation_loss": fit.validation.loss, "validation_accuracy": fit.validation.accuracy}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _answer(model: nn.Module, batch: Batch) -> Any:
    answer = model(*batch.inputs, **batch.keywords)
    return answer["logits"] if isinstance(answer, Mapping) and "logits" in answer else answer


def chart_of(watch: Watch, origin: Mapping[str, Tensor], *, budget: float = 25.0) -> Chart:
    """The chart of a run: the watch's model as it is now, its probe as data, and all that the looks have told.

    The probe is cut into batches as training draws them; where their size is not told, no ailment may judge it.
    """
    history = tuple(_moment(record) for record in watch.records)
    events = {} if watch.events is None else dict(watch.events.counts())
    events["batch size"] = float(watch.batch_size or math.nan)
    columns = _is_columns(watch.subject.data)
    return Chart(
        model=watch.model,
        data=Batches(columns, watch.model, batch_size=watch.batch_size or SIZE) if columns else watch.subject.data,
        loss=watch.loss,
        optimizer=watch.optimizer,
        validation=watch.validation,
        origin=origin,
        history=history,
        steps=max((moment.step for moment in history), default=None),
        events=events,
        budget=budget,
    )


SIZE = 32
"""Samples of a batch that a probe is cut into where it is not told how training draws them."""


def _is_columns(data: Any) -> tuple[Tensor, ...] | None:
    """The columns of a probe that is one batch, which can be cut anew; None where it is several."""
    source = getattr(data, "source", None)
    whole = isinstance(source, tuple) and all(isinstance(member, Tensor) for member in source)
    return source if whole else None


def _moment(record: Record) -> RunMoment:
    facts = record.facts
    return RunMoment(
        record.step,
        loss=facts.get("loss", math.nan),
        validation_loss=facts.get("validation_loss", math.nan),
        accuracy=facts.get("accuracy", math.nan),
        validation_accuracy=facts.get("validation_accuracy", math.nan),
        lr=math.nan if record.lr is None else record.lr,
        facts=facts,
    )
