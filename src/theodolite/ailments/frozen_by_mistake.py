"""Are layers frozen that were never trained?

Freezing trained layers is a decision and is not reported. A frozen matrix is suspect if it shows nothing learned: its entries
follow an initialization, or none of its singular values exceeds what noise of its size gives, and no normalization that is
frozen with it has moved. The same training with these
layers unfrozen and in the optimizer, tried on a copy, shows what freezing costs. It is always reported if at least a tenth of a
trained network is like this, the loss has a gradient there, and it is more than a first layer of random features.
"""

from collections.abc import Iterator
from functools import partial

from torch import nn

from theodolite.core.ailment import Ailment, Finding, evidence, few_of
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import slopes_of
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.start import was_trained
from theodolite.evidence.task import is_finite
from theodolite.evidence.thresholds import WORTH
from theodolite.evidence.trial import Change, held_too
from theodolite.evidence.weights import LEAST_ENTRIES, is_drawn, weight_facts


@once("frozen and untrained")
def _untrained(subject: Subject) -> list[str]:
    """Frozen matrices, as drawn, and the vectors beside them."""
    if subject.model is None:
        return []
    own = dict(subject.model.named_parameters())
    facts = weight_facts(subject)
    frozen = [name for name, p in own.items() if not p.requires_grad and p.is_floating_point()]
    scaled = any(own[name].ndim == 1 and _is_moved_scale(subject.model, name) for name in frozen)

    def as_drawn(name: str) -> bool:
        known = facts.get(name)
        if known is None or known.entries < LEAST_ENTRIES:
            return known is not None and is_drawn(own[name])
        return bool(known.start) or not (known.learned or scaled)

    drawn = {name.rpartition(".")[0] for name in frozen if own[name].ndim > 1 and as_drawn(name)}
    return [name for name in frozen if name.rpartition(".")[0] in drawn]


def _is_moved_scale(model: nn.Module, name: str) -> bool:
    """Whether a vector is the scale of a normalization, all of whose entries begin alike, and no longer are."""
    owner, _, last = name.rpartition(".")
    values = model.get_parameter(name).detach()
    return (
        last == "weight" and "Norm" in type(model.get_submodule(owner)).__name__ and bool((values != values[0]).any())
    )


def _share(subject: Subject, names: list[str]) -> float:
    own = dict(subject.model.named_parameters())
    return sum(own[name].numel() for name in names) / sum(p.numel() for p in own.values())


def _matrices(subject: Subject) -> list[str]:
    return [name for name, p in subject.model.named_parameters() if p.ndim > 1]


def _says(subject: Subject, names: list[str]) -> str:
    share = _share(subject, names)
    return f"{share:.0%} of the network is frozen (requires_grad=False) with weights that were never trained: {few_of(names)}."


REMEDY = "p.requires_grad_(True) for them before creating the optimizer; freeze only pretrained layers"


def judge(subject: Subject) -> Iterator[Finding]:
    names = _untrained(subject)
    if names and subject.model is not None and any(p.requires_grad for p in subject.model.parameters()):
        yield Finding(
            severity="warning" if was_trained(subject) and _matters(subject, names) else "note",
            where=names[0],
            says=_says(subject, names),
            remedy=REMEDY,
            suggested={"unfreeze": names},
            evidence=(evidence("frozen tensors without a trace of training", len(names)),),
        )


def _matters(subject: Subject, names: list[str]) -> bool:
    """Whether much of the network, not its first layer alone, is frozen as drawn and has a gradient."""
    own = dict(subject.model.named_parameters())
    behind = [name for name in names if name in _matrices(subject)[1:]]
    if _share(subject, names) < WORTH or not behind or not is_finite(subject):
        return False
    frozen = [own[name] for name in behind]
    try:
        for p in frozen:
            p.requires_grad_(True)
        slopes = slopes_of(subject, frozen)
    finally:
        for p in frozen:
            p.requires_grad_(False)
    return any(slope is not None and bool(slope.any()) for slope in slopes)


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same training with these layers free; a few early ones may be pretrained too little to show it."""
    names = _untrained(subject)
    if names and (_share(subject, names) >= WORTH or _matrices(subject)[-1] in names):
        found = found_by(_says(subject, names), REMEDY, {"unfreeze": names}, where=names[0])
        yield Intervention(Change("unfrozen", prepare=partial(held_too, names)), found, rank=3, sign=True)


ailment = Ailment(
    question="Are layers frozen that were never trained?",
    needs={"model", "data", "loss", "optimizer"},
    judge=judge,
    interventions=interventions,
)
