"""Are the weights stored in so few bits that most of each update is lost?

A weight $w$ with $t$ significant bits changes only if the update exceeds half a unit in its last place, about $2^{-t-1}|w|$
($t=8$ for bfloat16, 11 for float16). One step is taken on copies, in the model's own precision and in float32: an update is
lost if the float32 step moves an entry and the model's own step leaves it unchanged. That count is exact, and so is that of a
run: most entries that have a gradient are the same before and after each step that was compared. The same training in float32,
tried on a copy, decides whether it matters.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.run import Run
from theodolite.core.subject import Subject, once
from theodolite.evidence.experiment import has_won
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.start import was_trained
from theodolite.evidence.task import is_finite
from theodolite.evidence.thresholds import CRITICAL
from theodolite.evidence.trial import AS_IT_IS, Change, Trial
from theodolite.io.batches import Batch

LOW = (torch.bfloat16, torch.float16)
REMEDY = "keep the weights in float32 and compute under torch.autocast; model.float()"


def _low(subject: Subject) -> list[str]:
    own = () if subject.model is None else subject.model.named_parameters()
    return [name for name, p in own if p.dtype in LOW and p.requires_grad]


@once("updates lost")
def _share_lost(subject: Subject) -> float:
    """The share of entries that one step should move and does not."""
    names = _low(subject)
    if not names or subject.optimizer is None or not subject.has("loss") or not is_finite(subject):
        return 0.0
    here = replace(AS_IT_IS, name="one step", from_here=True)
    own, full = (
        Trial(subject, c) for c in (here, replace(_float32(subject), name="one step, float32", from_here=True))
    )
    before = {name: own.model.get_parameter(name).detach().clone() for name in names}
    own.advance(1)
    full.advance(1)
    if own.broken or full.broken:
        return 0.0
    lost = moved = 0
    for name in names:
        should = full.model.get_parameter(name) != before[name].float()
        lost += int((should & (own.model.get_parameter(name) == before[name])).sum())
        moved += int(should.sum())
    return lost / moved if moved else 0.0


def _float32(subject: Subject) -> Change:
    def loss(model: nn.Module, batch: Batch) -> Tensor:
        target = batch.target
        if isinstance(target, Tensor) and target.dtype in LOW:
            batch = replace(batch, target=target.float())
        return subject.loss_on(batch.on(model), model)

    return Change("in float32", prepare=in_float32, loss=loss, scored_by=loss, rows=_wide)


def _wide(batch: Batch) -> Batch:
    def wide(value: object) -> object:
        return value.float() if isinstance(value, Tensor) and value.dtype in LOW else value

    keywords = {name: wide(value) for name, value in batch.keywords.items()}
    return replace(batch, inputs=tuple(map(wide, batch.inputs)), keywords=keywords, target=wide(batch.target))


def in_float32(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Weights and what the optimizer holds of them, in float32."""
    model.float()
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.dtype in LOW:
                state[name] = value.float()


def _says(subject: Subject) -> str:
    dtype = str(subject.model.get_parameter(_low(subject)[0]).dtype).removeprefix("torch.")
    if not is_finite(subject):
        return f"Training in {dtype} ended in NaN or infinite numbers."
    share = _share_lost(subject)
    return (
        f"{share:.0%} of the weights that a step should change stay the same: the updates are smaller than the last "
        f"digit of {dtype}."
    )


def judge(subject: Subject) -> Iterator[Finding]:
    if _share_lost(subject) >= CRITICAL:
        yield Finding(
            severity="note" if has_won(subject) or not was_trained(subject) else "warning",
            where=_low(subject)[0],
            says=_says(subject),
            remedy=REMEDY,
            suggested={"dtype": "float32"},
            evidence=(evidence("share of updates lost", _share_lost(subject)),),
        )
    elif subject.run is not None:
        harmless = subject.has("loss") and has_won(subject)
        yield from (replace(f, severity="note") if harmless else f for f in while_training(subject.run))


def while_training(run: Run) -> Iterator[Finding]:
    """Steps that left most entries as they were."""
    words = run.silent.get("updates rounded away", ())
    if words:
        share, dtype = words
        yield Finding(
            severity="warning",
            says=f"{share} of the entries of the {dtype} weights that have a gradient do not change in a step: the updates are "
            f"smaller than the last digit of {dtype}.",
            remedy=REMEDY,
            suggested={"dtype": "float32"},
        )


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same training in float32."""
    names = _low(subject) if subject.has("loss") else []
    if names and (not is_finite(subject) or _share_lost(subject) >= CRITICAL):
        found = found_by(_says(subject), REMEDY, {"dtype": "float32"}, where=names[0])
        yield Intervention(_float32(subject), found, rank=5, sign=True)


ailment = Ailment(
    question="Is the precision of the weights too low?",
    needs={"model"},
    judge=judge,
    while_training=while_training,
    interventions=interventions,
    exact=True,
)
