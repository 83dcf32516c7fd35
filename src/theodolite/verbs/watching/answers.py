"""Whether a network that looks dead on a few samples answers all of the probe alike, and samples on which it does not."""

from typing import Any

import torch
from torch import Tensor

from theodolite.core.subject import Subject
from theodolite.measure import first_tensor

GONE = 1e-9
"""A tangent kernel below this share of its start tells no samples apart."""

ROUNDED = 32.0
"""Answers that differ by so many roundings of the largest are alike."""


def answers_alike(subject: Subject) -> bool:
    """Whether the model gives every sample of the probe the same answer, which is finite."""
    parts = [_answers(subject, batch) for batch in subject.batches()]
    if any(part.shape[1:] != parts[0].shape[1:] for part in parts):
        return False  # of sequences that differ in length it is not asked
    whole = torch.cat(parts)
    if not bool(whole.isfinite().all()):
        return False
    apart = float((whole - whole[:1]).abs().max())
    return apart <= ROUNDED * torch.finfo(whole.dtype).eps * float(whole.abs().max())


def unlike_samples(subject: Subject, most: int) -> Any:
    """Inputs of the samples of the first batch whose answers lie farthest from the usual one."""
    batch = next(subject.batches())
    answers = _answers(subject, batch)
    far = (answers - answers.median(0).values).abs().amax(1)
    chosen = batch.picked(far.topk(min(most, len(far))).indices)
    if chosen.keywords:
        return dict(chosen.keywords)
    return chosen.inputs[0] if len(chosen.inputs) == 1 else chosen.inputs


def _answers(subject: Subject, batch: Any) -> Tensor:
    with torch.no_grad():
        return first_tensor(subject.output(batch)).detach().float().flatten(1)
