"""Has the posterior of a variational autoencoder collapsed onto the prior?

If an output has two parts of the same shape (n, units) besides what is compared with the target, these are the mean and the
log variance of a code; a sample drawn from them, or an input passed through, is neither. After training the code is idle if its
means do not vary with the input and its variance is one. The decoder can then only give a constant output, and the
reconstruction explains nothing.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches
from theodolite.evidence.drawn_outputs import members_of
from theodolite.evidence.start import was_trained
from theodolite.evidence.task import is_finite, scores, task
from theodolite.evidence.thresholds import MISSED, PARTS, RARELY
from theodolite.io.batches import Batch


def judge(subject: Subject) -> Iterator[Finding]:
    if subject.model is None or not was_trained(subject) or not is_finite(subject):
        return
    whole = batches(subject)
    with untouched(subject.model), torch.no_grad():
        answers = [members_of(subject.answer(batch)) for batch in whole[:PARTS]]
        torch.manual_seed(1)
        again = members_of(subject.answer(whole[0]))
    code = _code(answers, again, [task(subject).member, *_handed_on(answers[0], whole[0])])
    if code is None:
        return
    mean, log_variance = code
    said = mean.var(0) / (mean.var(0) + log_variance.exp().mean(0))
    active = int((said > RARELY).sum())
    if active or float(log_variance.mean().abs()) > MISSED:
        return
    own = scores(subject)[0]
    loss = "" if own is None else f" The loss is {own.loss:.3g}."
    yield Finding(
        severity="critical",
        where="code",
        says=f"The posterior has collapsed: none of the {mean.shape[1]} units of the code varies with the input (at most "
        f"{float(said.max()):.1%} of its variance), so the decoder gives every input the same output.{loss}",
        remedy="a smaller weight on the KL term: start at 0 and raise it slowly (annealing), or allow each unit a few "
        "tenths of a "
        "nat (free bits)",
        suggested={"kl_weight": 0.01},
        evidence=(evidence("largest share of variance that a unit of the code carries", float(said.max())),),
    )


def _handed_on(answer: list[Tensor], batch: Batch) -> list[int]:
    """The places of what an answer only repeats: an input, or a part before it."""
    before = [*batch.tensors(), *answer]
    given = len(before) - len(answer)
    return [
        place
        for place, part in enumerate(answer)
        if any(other.shape == part.shape and torch.equal(other, part) for other in before[: given + place])
    ]


def _code(answers: list[list[Tensor]], again: list[Tensor], left_out: list[int]) -> tuple[Tensor, Tensor] | None:
    """The mean and the log variance of a code, where an answer has just two more tensors of one shape (n, units).

    What differs in a second pass was drawn.
    """
    first = answers[0]
    others = [p for p, part in enumerate(first) if p not in left_out and part.ndim == 2 and torch.equal(part, again[p])]
    if len(others) != 2 or first[others[0]].shape != first[others[1]].shape:
        return None
    mean, log_variance = (torch.cat([parts[p] for parts in answers]).double() for p in others)
    return mean, log_variance


ailment = Ailment(question="Has the posterior collapsed?", needs={"model", "data", "loss"}, judge=judge)
