r"""Is the temperature of a contrastive loss so high that logits cannot differ, or so low that all saturate?

Found by experiment on the loss alone. If every sample has the same output, a loss that picks each sample out of n by a softmax
is $\log n$ at any temperature; so $e^{L}$ is a whole number that grows with the batch, and nothing else gives that. Then the
outputs are moved freely, better than any network could: if that lowers the loss by less than a tenth, no network can learn from
it (similarities between -1 and 1 over a temperature of 100 differ by 0.02 at most). And if random outputs already cost fifty
times $\log n$, logits differ by hundreds: the softmax is 0 or 1, and all but one of the n get no gradient. A model may give the
logits of all pairs itself, and have the temperature inside: it is saturated where they differ by as much, and if they differ by
less than 1, wider ones are tried on a copy.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, first_rows
from theodolite.evidence.constant_answers import told_from
from theodolite.evidence.drawn_outputs import drawn_outputs, members_of, quiet, rebuilt
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.output_tail import least_loss
from theodolite.evidence.thresholds import NOTHING, ROWS, WORTH
from theodolite.evidence.trial import Change
from theodolite.io.batches import Batch

SATURATED = 50.0
"""How many times log n random outputs may cost."""
WIDE = 10.0
"""Logits of a temperature of 0.1 differ by so much, those that differ by 1 make a softmax of nearly equal shares."""


def judge(subject: Subject) -> Iterator[Finding]:
    if subject.model is None or subject.loss is None or not batches(subject):
        return
    batch = first_rows(batches(subject)[0], ROWS)
    with untouched(subject.model), torch.no_grad(), quiet():
        answer = subject.answer(batch)
        own = members_of(answer)
    others = told_from(subject)
    if not others:
        return
    chance = math.log(others)
    cost, drawn = partial(_cost, subject, answer, batch), _row(drawn_outputs(answer, None)[0])
    with quiet(), torch.no_grad():
        costs = max(float(cost(drawn)), _apart(own))
    least = min(
        least_loss(cost, start, size=float(start.square().mean().sqrt()) or 1.0) for start in (drawn, _row(own))
    )
    told = (evidence("loss of equal outputs", chance), evidence("loss of random outputs", costs),
            evidence("least loss of any outputs", least))  # fmt: skip
    if chance - least < WORTH * chance:
        yield Finding(
            severity="critical",
            where="loss",
            says=f"The loss can hardly fall: it is {chance:.4g} (log {others}) when all outputs are equal, and {least:.4g} for "
            "the best possible outputs. The temperature makes all similarities nearly equal.",
            remedy="a temperature of 0.1 (0.05 to 0.5) in the loss; larger ones make all similarities from -1 to 1 nearly equal",
            suggested={"temperature": 0.1},
            evidence=told,
        )
    elif costs > SATURATED * chance:
        yield Finding(
            severity="critical",
            where="loss",
            says=f"The softmax of the loss is saturated: wrong outputs cost {costs:.4g}, chance would cost {chance:.3g} "
            f"(log {others}). All but one of a sample's negatives get no gradient.",
            remedy="a temperature of 0.1 (0.05 to 0.5) in the loss",
            suggested={"temperature": 0.1},
            evidence=told,
        )


def _apart(own: Sequence[Tensor]) -> float:
    """By how much the logits of a sample differ, where a model gives those of all pairs of a batch; else 0."""
    if len(own) != 1 or own[0].ndim != 2 or own[0].shape[0] != own[0].shape[1]:
        return 0.0
    return float((own[0].amax(1) - own[0].amin(1)).mean())


def _like(own: Tensor, outputs: Tensor) -> Tensor:
    """Outputs in place of the model's own: of length one where it normalizes its own, in half precision too."""
    one = own.ndim > 1 and bool((own.float().norm(dim=-1) - 1).abs().amax() < NOTHING)
    return nn.functional.normalize(outputs, dim=-1) if one else outputs


def _row(members: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.detach().float().flatten() for t in members])


def _cost(subject: Subject, answer: Any, batch: Batch, row: Tensor) -> Tensor:
    """The loss of all numbers of an answer in one row."""
    own = members_of(answer)
    parts = torch.split(row, [t.numel() for t in own])
    given = [_like(t, part.reshape(t.shape)) for part, t in zip(parts, own, strict=True)]
    return subject.loss(rebuilt(answer, given), batch.target)


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Wider logits, where a model gives those of all pairs of a batch and they hardly differ."""
    if subject.model is None or not told_from(subject):
        return
    with untouched(subject.model), torch.no_grad(), quiet():
        own = members_of(subject.answer(first_rows(batches(subject)[0], ROWS)))
    apart = _apart(own)
    if not 0 < apart < 1:
        return
    factor = WIDE / apart

    found = found_by(
        f"Logits of a sample differ by {apart:.2g}: the temperature makes all similarities nearly equal.",
        f"a temperature {factor:.2g} times lower; 0.1 (0.05 to 0.5) is usual for similarities between -1 and 1",
        {"temperature": f"/ {factor:.2g}"},
        where="loss",
    )
    yield Intervention(Change("wider logits", prepare=partial(_times, factor)), found, rank=8, sign=True)


def _times(factor: float, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model.register_forward_hook(lambda module, args, output: factor * output)


ailment = Ailment(
    question="Is the temperature of the loss too high or too low?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
)
