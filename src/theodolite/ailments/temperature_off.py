r"""Is the temperature of a contrastive loss so high that logits cannot differ, or so low that all saturate?

Found by experiment on the loss alone. If every sample has the same output, a loss that picks each sample out of n by a softmax
is $\log n$ at any temperature; so $e^{L}$ is a whole number that grows with the batch, and nothing else gives that. Then the
outputs are moved freely, better than any network could: if that lowers the loss by less than a tenth, no network can learn from
it (similarities between -1 and 1 over a temperature of 100 differ by 0.02 at most). And if random outputs already cost fifty
times $\log n$, logits differ by hundreds: the softmax is 0 or 1, and all but one of the n get no gradient.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, first_rows
from theodolite.evidence.drawn_outputs import drawn_outputs, members_of, quiet, rebuilt
from theodolite.io.batches import Batch

ROWS, STEPS = 64, 200
CANNOT, SATURATED = 0.1, 50.0
"""The share of log n that free outputs must take off the loss, and how many times log n random ones may cost."""
WHOLE = 2e-3
"""How far from a whole number e to the loss of equal outputs may be, beside it."""


def judge(subject: Subject) -> Iterator[Finding]:
    if subject.model is None or subject.loss is None or not batches(subject):
        return
    batch = first_rows(batches(subject)[0], ROWS)
    with untouched(subject.model), torch.no_grad(), quiet():
        answer = subject.answer(batch)
        own = members_of(answer)
        if not own or any(len(t) != len(batch) for t in own) or len(batch) < 8:
            return
        others = _others(subject.loss, answer, own, batch)
    if not others:
        return
    chance = math.log(others)
    drawn = drawn_outputs(answer, None)[0]
    with quiet():
        costs = _loss(subject.loss, answer, drawn, batch)
        least = min(_least(subject.loss, answer, start, batch) for start in (drawn, [t.detach() for t in own]))
    told = (evidence("loss of equal outputs", chance), evidence("loss of random outputs", costs),
            evidence("least loss of any outputs", least))  # fmt: skip
    if chance - least < CANNOT * chance:
        yield Finding(
            severity="critical",
            where="loss",
            says=f"The loss can hardly fall: it is {chance:.4g} (log {others}) when all outputs are equal, {least:.4g} for the "
            "best possible outputs. The temperature makes all similarities nearly equal.",
            remedy="a temperature of 0.1 (0.05 to 0.5) in the loss: divided by more, similarities from -1 to 1 are all alike",
            suggested={"temperature": 0.1},
            evidence=told,
        )
    elif costs > SATURATED * chance:
        yield Finding(
            severity="critical",
            where="loss",
            says=f"The softmax of the loss is saturated: random outputs cost {costs:.4g}, chance would be {chance:.3g} "
            f"(log {others}). All but one of a sample's negatives get no gradient.",
            remedy="a temperature of 0.1 (0.05 to 0.5) in the loss",
            suggested={"temperature": 0.1},
            evidence=told,
        )


def _loss(loss: Any, answer: Any, members: Sequence[Tensor], batch: Batch) -> float:
    with torch.no_grad():
        return float(loss(rebuilt(answer, list(members)), batch.target))


def _others(loss: Any, answer: Any, own: Sequence[Tensor], batch: Batch) -> int:
    """From how many a sample is told, in the whole batch; 0 where that is not what the loss asks."""
    counts = []
    for rows in (len(batch), len(batch) // 2):
        equal = [torch.ones_like(t[:rows]) for t in own]  # of several views of a sample, too
        target = batch.target[:rows] if isinstance(batch.target, Tensor) and batch.target.ndim else batch.target
        try:
            value = float(loss(rebuilt(answer, equal), target))
        except Exception:  # a loss of whole batches only
            return 0
        if not 0 < value < math.log(4 * len(batch)):
            return 0
        counts.append(math.exp(value))
    whole = [round(value) for value in counts]
    if any(abs(a - b) > WHOLE * b for a, b in zip(counts, whole, strict=True)):
        return 0
    grown = whole[0] - whole[1]
    rows = len(batch) - len(batch) // 2
    return whole[0] if grown in (rows, 2 * rows) else 0


def _least(loss: Any, answer: Any, start: Sequence[Tensor], batch: Batch) -> float:
    """The lowest loss on the way of a descent in the outputs themselves, by Adam: the size of a gradient plays no part."""
    free = [t.detach().float().clone().requires_grad_() for t in start]
    size = max(float(t.detach().square().mean().sqrt()) for t in free) or 1.0
    seeker = torch.optim.Adam(free, lr=0.1 * size)
    best = math.inf
    with torch.enable_grad():
        for _ in range(STEPS):
            seeker.zero_grad()
            value = loss(rebuilt(answer, free), batch.target)
            best = min(best, float(value.detach()))
            if not value.requires_grad:
                break
            torch.autograd.backward(value)
            seeker.step()
    return best


ailment = Ailment(
    question="Is the temperature of the loss too high or too low?", needs={"model", "data", "loss"}, judge=judge
)
