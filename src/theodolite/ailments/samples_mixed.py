"""Does the output for one sample depend on the other samples in its batch?

Exact: half of a batch is replaced by the other half; in evaluation mode the outputs for the half that stays must not change.
They change if a recurrent or attention layer takes the batch axis for time (``batch_first``), or if a view cuts across samples.
Graph networks and layers that compare samples mix them on purpose, so a network that learns is not reported; and if a layer has
its axes the other way round, the same training with ``batch_first`` changed, tried on a copy, decides.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import nn

from theodolite.core.ailment import Ailment, Finding, evidence, few_of
from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import batches, first_rows, joined
from theodolite.evidence.constant_answers import told_from
from theodolite.evidence.drawn_outputs import members_of, quiet
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.start import steps_made
from theodolite.evidence.task import is_finite, task
from theodolite.evidence.thresholds import A_FEW, A_RUN, CRITICAL, ROUNDING, ROWS
from theodolite.evidence.trial import Change, present_skill


def sign(subject: Subject) -> bool:
    """Whether answers move with the inputs of other samples."""
    return _moved(subject) > ROUNDING


@once("samples mixed")
def _moved(subject: Subject) -> float:
    """The largest change of an answer when other samples' inputs are exchanged, beside the size of the answers."""
    model = subject.model
    together = joined(batches(subject)[:ROWS]) or list(batches(subject)[:1])
    batch = first_rows(together[0], ROWS)
    whole = len(batch.inputs) + len(batch.keywords) == len(batch.tensors())
    if model is None or not is_finite(subject) or len(batch) < A_FEW or not whole or told_from(subject):
        return 0.0  # a model may answer with what each pair of a batch is to each other
    if any(len(t) != len(batch) for t in batch.tensors()):
        return 0.0  # a graph, or something that belongs to no sample
    half, every = len(batch) // 2, torch.arange(len(batch))
    changed = [torch.where(part, every.roll(half), every) for part in (every < half, every >= half)]
    try:
        with untouched(model), torch.no_grad(), quiet():
            answers = []
            for rows in (every, *changed):
                torch.manual_seed(0)  # of a model that draws, as a variational autoencoder does
                answers.append([t.detach() for t in members_of(subject.answer(batch.picked(rows)))])
    except (RuntimeError, ValueError, TypeError, IndexError):
        return 0.0
    own, late, early = (found[task(subject).member] if found else torch.zeros(0) for found in answers)
    if not own.numel() or len(own) != len(batch):
        return 0.0
    size = float(own.abs().max())
    moved = max(float((late - own)[half:].abs().max()), float((early - own)[:half].abs().max()))
    return moved / size if size > 0 else 0.0


def _axes(subject: Subject) -> list[str]:
    """The layers that take the axis of the batch for that of time, as far as their settings tell."""
    return [name for name, module in subject.model.named_modules() if getattr(module, "batch_first", None) is False]


def judge(subject: Subject) -> Iterator[Finding]:
    learned = present_skill(subject)
    if not sign(subject) or steps_made(subject) < A_RUN or not learned <= CRITICAL:
        return
    yield Finding(
        severity="warning",
        says=f"{_says(subject)} and the network has hardly learned anything.",
        remedy=_remedy(_axes(subject)),
        suggested={"batch_first": True} if _axes(subject) else {},
        evidence=(evidence("change of the outputs with other samples, relative to their size", _moved(subject)),),
    )


def _says(subject: Subject) -> str:
    return f"The samples of a batch are mixed: replacing the others changes a sample's output by {_moved(subject):.0%},"


def _remedy(names: list[str]) -> str:
    if names:
        return f"batch_first=True in {few_of(names)}, or x.transpose(0, 1) before it"
    return "keep the batch on the first axis: permute or transpose in place of view or reshape"


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The layers' axes the other way round, where samples are mixed."""
    names = _axes(subject) if sign(subject) else []
    if names:
        says = f"{_says(subject)} because {names[0]} treats the first axis as time."
        found = found_by(says, _remedy(names), {"batch_first": True}, where=names[0])
        yield Intervention(Change("batch first", prepare=partial(_batch_first, names)), found, rank=3, sign=True)


def _batch_first(names: list[str], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for name in names:
        setattr(model.get_submodule(name), "batch_first", True)  # noqa: B010


ailment = Ailment(
    question="Does the output for a sample depend on the others in its batch?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
    sign=sign,
)
