"""What a watch knows of a run: the run so far, and the subject that a diagnosis is made of."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Finding
from theodolite.core.run import Run, RunMoment
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import joined
from theodolite.io.batches import Batch, Batches, as_given
from theodolite.measure.dynamics.training_copies import copied_training
from theodolite.verbs.watching.layers import layer_facts, starting_entries
from theodolite.verbs.watching.records import Record, last_standing
from theodolite.verbs.watching.training_hooks.loss_between_looks import mean_loss
from theodolite.verbs.watching.training_hooks.training_batches import MOST_BATCHES

if TYPE_CHECKING:
    from theodolite.verbs.watching.look_context import LookContext
    from theodolite.verbs.watching.training_hooks.step_trace import Spike
    from theodolite.verbs.watching.watch import Watch

LARGEST_TRIED, WORK, STEPS, TRIED = 1 << 21, 2.0, 60, 2
"""Models of up to so many parameters have a remedy tried on copies while they train; nominal seconds and steps of that, and how
many copies that takes as a rule."""
FEW, LEAST = 8, 4
"""Batches and samples that an odd batch is looked at by, and samples of one that can be told from a single odd sample."""
CALM, FALLS = 1.2, 0.98
"""A trial is calm whose loss is never above this multiple of its start, and ends below that one."""


def run_of(
    watch: Watch,
    left_out: Mapping[str, tuple[str, ...]] | None = None,
    silent: Mapping[str, tuple[str, ...]] | None = None,
) -> Run:
    """The looks of a watch as the run so far; what a thinned look left out stands as it was read last."""
    records = [*watch.records[:-1], *last_standing(watch.records)]
    events = {} if watch.events is None else dict(watch.events.counts())
    if watch.optimizer is not None:
        events["maximizes"] = float(any(group.get("maximize") for group in watch.optimizer.param_groups))
    events["batch size"] = float(watch.seen_batch_size or math.nan)
    calls = 0 if watch.training_batches is None else watch.training_batches.sizes.total()
    if calls <= MOST_BATCHES and calls < 2 * events.get("optimizer steps", 0.0):  # several losses of one forward pass
        events["backward passes"] = 1.0
    told = watch.silent if silent is None else silent
    return Run(tuple(map(moment_of, records)), events, left_out or {}, told, rates=watch.rates)


def subject_of_run(watch: Watch, origin: Mapping[str, Tensor]) -> Subject:
    """The subject of a run: the model as it is now, the batches that it is trained on, and all that the looks have told.

    Data that the user passed come first, then what the reservoir has seen of training, then the probe.
    """
    seen, data = watch.training_batches, watch.data
    if data is None and seen is not None and seen.kept:
        data = as_given(seen.kept)
    return Subject(
        watch.model,
        data=watch.subject.data if data is None else data,
        loss=watch.loss,
        optimizer=watch.optimizer,
        validation=watch.validation,
        origin=origin,
        run=run_of(watch),
        name=watch.subject.name,
        checked=False,
    )


def tried_step(watch: Watch, origin: Mapping[str, Tensor], finding: Finding) -> Finding:
    """The finding with a step that was tried out on copies, where one could be and did better; else as it is."""
    from theodolite.evidence.start import largest_lr
    from theodolite.evidence.trial import Change, Trial
    from theodolite.evidence.work import Work

    if watch.optimizer is None or sum(p.numel() for p in watch.model.parameters()) > LARGEST_TRIED:
        return finding
    try:
        subject = subject_of_run(watch, origin)
        subject.seen["work"] = Work(WORK)
        for factor in (0.1, 0.03, 0.01, 1e-3, 1e-4):
            losses = Trial(subject, Change(f"lr x {factor:g}", lr=factor)).advance(STEPS).losses
            cut = max(1, len(losses) // 4)
            first, last = sum(losses[:cut]) / cut, sum(losses[-cut:]) / cut
            if last < FALLS * first and max(losses) < CALM * max(first, losses[0]):
                lr = float(f"{factor * largest_lr(subject):.2g}")
                return replace(finding, remedy=f"lr at most {lr:g} (tried on a copy)", suggested={"lr": lr})
    except Exception:  # whatever fails on copies, training goes on
        return finding
    return finding


def odd_batch(watch: Watch, spike: Spike) -> Spike:
    """The spike, with whether its batch is odd beside others now, in most of its samples, and which clipping held on a copy."""
    subject, batch = watch.subject, spike.batch
    if batch is None or not spike.others:
        return replace(spike, sure=False)
    rows = len(batch)
    try:
        with torch.no_grad():
            others = [float(subject.loss_on(other)) for other in spike.others[-FEW:]]
            now = float(subject.loss_on(batch))
            picked = range(0, rows, max(1, rows // FEW))
            each = [float(subject.loss_on(batch.picked(slice(i, i + 1)))) for i in picked]
        sure = rows >= LEAST and min(now, statistics.median(each)) > max(others)
        return replace(spike, sure=sure, now=now, held=_held_by_clipping(watch, batch) if sure else "")
    except Exception:  # whatever fails here, training goes on
        return replace(spike, sure=False)


def _held_by_clipping(watch: Watch, batch: Batch) -> str:
    """The loss of the probe before a step on that batch, after it, after a clipped one, and the norm that it was clipped to."""
    model, optimizer = watch.model, watch.optimizer
    if optimizer is None or sum(p.numel() for p in model.parameters()) > LARGEST_TRIED:
        return ""
    probe = next(iter(watch.subject.batches()))
    usual, ends = math.nan, []
    with untouched(None), torch.enable_grad():
        for clipped in (False, True):
            copied, steps = copied_training(model, optimizer)
            copied.train()
            own = [p for p in copied.parameters() if p.requires_grad]
            if not clipped:
                torch.autograd.backward(watch.subject.loss_on(probe, copied))
                usual = float(torch.nn.utils.clip_grad_norm_(own, math.inf))
            for parameter in own:
                parameter.grad = None
            torch.autograd.backward(watch.subject.loss_on(batch, copied))
            if clipped:
                torch.nn.utils.clip_grad_norm_(own, usual)
            steps.step()
            with torch.no_grad():
                ends.append(float(watch.subject.loss_on(probe, copied)))
    with torch.no_grad():
        before = float(watch.subject.loss_on(probe))
    return f"{before:.3g} {ends[0]:.3g} {ends[1]:.3g} {usual:.2g}"


def held_out_batches(validation: Any, model: nn.Module) -> tuple[Batch, ...]:
    """The validation data as batches on the model's device, read once."""
    if validation is None:
        return ()
    with untouched(None):
        return tuple(batch.on(model) for batch in Batches(validation, model))


def thinned_subject(subject: Subject, samples: int) -> Subject:
    """The same subject with about so many samples of its data, evenly spread; as it is where they cannot be taken apart."""
    whole = list(subject.data)
    few = thinned_batches(whole, samples)
    if few is whole or subject.model is None:
        return subject
    return subject.of_data(Batches(as_given(few), subject.model))


def thinned_batches(whole: Sequence[Batch], samples: int) -> Sequence[Batch]:
    """About so many samples of some batches, evenly spread and in one batch where they fit together."""
    count = sum(map(len, whole))
    together = joined(whole) if count > samples else []
    if not together:
        return whole
    rows = torch.arange(samples) * count // samples
    return (together[0].picked(rows.to(together[0].tensors()[0].device)),)


def facts_beside(context: LookContext, held_out: Sequence[Batch], *, whole: bool) -> dict[str, float]:
    """What each look notes beside its readings: held-out loss, each layer's gradient and way so far; a whole one accuracies."""
    carried = context.carried
    if carried.entries is None:
        carried.entries = starting_entries(context.model, carried.origin)
    slopes = None if context.bare else context.slope.parts
    layers = layer_facts(context.model, slopes, carried.entries, carried.ways)
    return {**scores_of(context, held_out, whole=whole), **layers}


def scores_of(context: LookContext, held_out: Sequence[Batch], *, whole: bool) -> Mapping[str, float]:
    """Loss on held-out data and, of a whole look, accuracies there and on the probe, in evaluation mode, as far as they are."""
    subject = context.subject
    if not held_out:
        return {}
    found = {"validation_loss": mean_loss(subject, held_out), "validation_samples": float(sum(map(len, held_out)))}
    if whole:
        from theodolite.evidence.task import score_of

        subject.seen.update(context.carried.known)
        scores = score_of(subject, list(subject.batches())), score_of(subject, held_out)
        context.carried.known = {name: subject.seen[name] for name in ("task", "price")}
        named = zip(("accuracy", "validation_accuracy"), scores, strict=True)
        found |= {name: score.accuracy for name, score in named if score is not None}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def moment_of(record: Record) -> RunMoment:
    """One record of a watch as a moment of the run."""
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
