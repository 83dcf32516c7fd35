r"""Are the batches so small, or so badly shuffled, that their noise keeps the loss high?

The gradient of a batch of $B$ samples is the mean gradient plus noise of variance $\mathrm{tr}\,\Sigma/B$. Above the noise
scale $\mathrm{tr}\,\Sigma/|\bar g|^2$ larger batches gain nothing (McCandlish et al. 2018); below it noise outweighs the
signal. Every constant learning rate ends at a noise floor, so noise alone is not a fault. It is one when batches 8 times as
large, at the same learning rate and in a quarter of the steps, recover what the run has lost. Batches whose classes come in
order are another kind of noise, which shuffling the same samples removes: randomly drawn classes exceed three standard
deviations of chi squared about once in 200 runs, and are then only tried.
"""

import math
from collections.abc import Callable, Iterator

import torch

from theodolite.core.ailment import Ailment, Finding
from theodolite.core.subject import Subject
from theodolite.evidence.batches import (
    batch_size,
    batches,
    has_places,
    is_thinned,
    joined,
    shuffled,
    training_and_held_out,
)
from theodolite.evidence.interventions import Intervention, Outcome, found_by
from theodolite.evidence.start import was_trained
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import A_FEW, SURE
from theodolite.evidence.trial import Change

FOLD, LARGEST = 8, 32
"""How many batches are joined; those of more samples than this are not called small (of sequences with a target at each place,
a quarter of it)."""


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same samples in another order, and batches that are larger."""
    if not was_trained(subject):
        return
    training, _ = training_and_held_out(subject)
    if _batches_unlike(subject) and len(shuffled(training, len(training))) >= max(2, len(training) // 2):
        change = Change("shuffled", order=lambda whole: shuffled(whole, len(whole)), reorders=True)
        yield Intervention(change, _in_order(), rank=8, sign=True)
    size = batch_size(subject)
    largest = LARGEST / A_FEW if training and has_places(training[0]) else LARGEST
    if size is not None and size <= largest and not is_thinned(subject) and len(joined(training, FOLD)) >= 2:
        change = Change(f"batches x {FOLD}", order=lambda whole: joined(whole, FOLD), stretch=0.25)
        yield Intervention(change, _too_small(size), rank=30, sign=True)


def _in_order() -> Callable[[Outcome], Finding]:
    says = "The batches are not shuffled: classes come in order, and each batch undoes what the previous one taught."
    return found_by(says, "DataLoader(..., shuffle=True)", {"shuffle": True})


def _too_small(size: int) -> Callable[[Outcome], Finding]:
    remedy = f"batch_size={size * FOLD} (or a learning rate {FOLD} times smaller, for {FOLD} times as many steps)"
    return found_by(f"Batches of {size} are too noisy for this learning rate.", remedy, {"batch_size": size * FOLD})


def _batches_unlike(subject: Subject) -> bool:
    """Whether classes differ from batch to batch by more than draws would: chi squared beyond three standard deviations."""
    if task(subject).kind not in ("classes", "labels"):
        return False
    found = [task(subject).classes_of(b.target) for b in batches(subject) if isinstance(b.target, torch.Tensor)]
    known = [part for part in found if part is not None and len(part) and int(part.min()) >= 0]
    if len(known) < A_FEW or any(
        isinstance(b.target, torch.Tensor) and b.target.ndim > 1 for b in batches(subject)[:1]
    ):
        return False
    classes = max(int(part.max()) for part in known) + 1
    counts = torch.stack([torch.bincount(part, minlength=classes).double() for part in known])
    counts = counts[:, counts.sum(0) > 0]  # (batches, classes)
    expected = counts.sum(1, keepdim=True) * counts.sum(0) / counts.sum()
    squares = float(((counts - expected).square() / expected).sum())
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    return degrees > 0 and squares > degrees + SURE * math.sqrt(2 * degrees)


ailment = Ailment(
    question="Are the batches too small for the learning rate?",
    needs={"model", "data", "loss", "optimizer"},
    interventions=interventions,
    laws=("constant-step-noise-floor",),
)
