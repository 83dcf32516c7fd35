"""Has the posterior of a variational autoencoder collapsed onto the prior?

If an answer has three parts, two of which have the same shape and are not compared with the target, these two are the mean and
the log variance of a code. After training the code is idle if its means do not vary with the input and its variance is one. The
decoder can then only give a constant answer, and the reconstruction explains nothing.
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


def judge(subject: Subject) -> Iterator[Finding]:
    if subject.model is None or not was_trained(subject) or not is_finite(subject):
        return
    with untouched(subject.model), torch.no_grad():
        answers = [members_of(subject.answer(batch)) for batch in batches(subject)[:PARTS]]
    code = _code(answers, task(subject).member)
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
        f"{float(said.max()):.1%} of its variance), so the decoder gives every input the same answer.{loss}",
        remedy="a smaller weight on the KL term: start at 0 and raise it slowly (annealing), or allow each unit a few "
        "tenths of a "
        "nat (free bits)",
        suggested={"kl_weight": 0.01},
        evidence=(evidence("largest share of variance that a unit of the code carries", float(said.max())),),
    )


def _code(answers: list[list[Tensor]], target: int) -> tuple[Tensor, Tensor] | None:
    """The mean and the log variance of a code, where an answer has just two more tensors of one shape (n, units)."""
    first = answers[0] if answers else []
    others = [place for place in range(len(first)) if place != target]
    if len(others) != 2 or any(first[p].ndim != 2 for p in others) or first[others[0]].shape != first[others[1]].shape:
        return None
    mean, log_variance = (torch.cat([parts[p] for parts in answers]).double() for p in others)
    return mean, log_variance


ailment = Ailment(question="Has the posterior collapsed?", needs={"model", "data", "loss"}, judge=judge)
