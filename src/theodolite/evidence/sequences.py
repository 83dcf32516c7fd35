"""Sequences of symbols: which input a target is."""

from dataclasses import dataclass

import torch

from theodolite.core.subject import Subject
from theodolite.evidence.batches import samples
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import A_FEW, FEWEST, NEARLY_ALL


@dataclass(frozen=True)
class TargetShift:
    """Targets are inputs so many places further on; the share of places where that is so."""

    shift: int
    share: float


def target_shift(subject: Subject, which: int = 0) -> TargetShift | None:
    """By how many places targets are inputs shifted to the front, among those that count; None where they are something else.

    ``which`` of the inputs is asked: a decoder is given what was said so far beside what it answers to. Where the task is not
    known, nor is known which target the loss asks of which place: it may shift them itself.
    """
    sample, meant = samples(subject), task(subject)
    if sample is None or sample.target is None or meant.kind != "classes":
        return None
    x, target, found = sample.inputs[which], sample.target, []
    if x.is_floating_point() or x.ndim != 2 or target.shape != x.shape:
        return None
    x, target = x[:, : x.shape[1] - meant.shift], target[:, meant.shift :]
    for shift in range(min(A_FEW, x.shape[1])):
        ahead, wanted = x[:, shift:], target[:, : x.shape[1] - shift]
        counts = torch.ones_like(wanted, dtype=torch.bool)
        for value in meant.ignored:
            counts &= wanted != value
        if int(counts.sum()) >= FEWEST:
            found.append(TargetShift(shift, float((ahead == wanted)[counts].double().mean())))
    best = max(found, key=lambda one: one.share, default=None)
    return best if best is not None and best.share >= NEARLY_ALL else None
