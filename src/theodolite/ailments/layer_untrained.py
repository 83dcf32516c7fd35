r"""Is a layer still at its initialization while the others have been trained?

If the weights before training are known, it is a fact: a matrix that requires a gradient is within rounding of its start while
others have moved. If not, the initialization is recognized by its distribution: the entries of a layer drawn uniformly from
$\pm1/\sqrt{\text{fan-in}}$ (or He's, Glorot's, LeCun's bound) reach that bound within $\log(1000)/n$, none exceeds it, and they
are uniform below it (Kolmogorov's distance at a chance of 0.001). With fewer than 1000 entries only the first of these bounds
counts, because one of the others is always near. A step of relative size $\delta$ takes about $n\delta/4$ entries over the
bound, so a trained layer passes by chance with probability $e^{-n\delta/4}$: of 300 layers after a few small steps, several do.
If the other layers have hardly left their bounds, and for fewer than 1000 entries, a layer with entries that PyTorch's
initialization cannot produce counts as trained. The model must have been trained too: steps were made, a singular value of
another matrix is above the Marchenko-Pastur edge, or the loss is well below that of ignoring the input; a checkpoint with two
other trained matrices counts. If the last matrix alone is at its initialization before any step, it is a new head. In all other
cases it is a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.lazy_torch import torch
from theodolite.core.subject import Subject
from theodolite.evidence.thresholds import PART, PARTS, ROUNDING, STILL
from theodolite.evidence.weights import LEAST_ENTRIES, WeightFacts, entries_over, has_left, is_table, weight_facts
from theodolite.io.weights import owners_of

if TYPE_CHECKING:
    from torch import Tensor

TELLING = 1000
"""Entries from which bounds other than PyTorch's own are looked for. The six of them, each with its slack, cover 4 % of a scale
then; with 160 entries they cover a quarter, and so few do not show by their shape that they were trained."""


def judge(subject: Subject) -> Iterator[Finding]:
    own = {} if subject.model is None else dict(subject.model.named_parameters())
    wanted = [
        f
        for f in weight_facts(subject).values()
        if len(f.shape) > 1 and (f.name not in own or own[f.name].requires_grad)
    ]
    if subject.model is None:  # formats order their keys each in its own way
        wanted.sort(key=lambda facts: facts.name)
    if any(facts.moved is not None for facts in wanted):
        yield from _beside_the_start(subject, wanted)
    else:
        yield from _beside_the_law(subject, wanted)


def _beside_the_start(subject: Subject, wanted: list[WeightFacts]) -> Iterator[Finding]:
    still = [facts for facts in wanted if facts.moved is not None and facts.moved <= STILL]
    went = [facts for facts in wanted if facts.moved is not None and facts.moved >= ROUNDING]
    if any("weight_hh" in facts.name for facts in still) and subject.has("loss"):
        from theodolite.ailments.layer_cut_off import cut_and_unused

        # of a recurrent layer that is given one position, or read at its first: layer-cut-off tells the one from the other
        unused = cut_and_unused(subject)[1]
        still = [facts for facts in still if not ("weight_hh" in facts.name and facts.name in unused)]
    if not still or not went:
        return
    held = _held(subject)
    left_out = [facts for facts in still if held is not None and facts.name not in held]
    inside = [facts for facts in still if facts not in left_out]
    names = _names(inside or still)
    typical = sorted(facts.moved or 0.0 for facts in went)[len(went) // 2]
    yield Finding(
        severity="warning" if inside else "note",
        where=(inside or still)[0].name,
        says=f"{names} was not trained: it moved by less than {STILL:g} of its norm, while {len(went)} other matrices moved by "
        f"{typical:.2g} times theirs (median). "
        + ("It requires a gradient and got none." if inside else "No group of the optimizer holds it."),
        remedy="check that its output reaches the loss (no detach, no torch.no_grad) and that its group has lr > 0"
        if inside
        else "optimizer.add_param_group({'params': [...]}) with it, or requires_grad_(False) if it should stay fixed",
        suggested={} if inside else {"add_to_optimizer": [facts.name for facts in left_out]},
        evidence=tuple(
            evidence("relative distance from the start", facts.moved or 0.0, where=facts.name) for facts in still[:20]
        ),
    )


def _beside_the_law(subject: Subject, wanted: list[WeightFacts]) -> Iterator[Finding]:
    owners = owners_of(subject.model)
    judged = [
        f for f in wanted if f.entries >= LEAST_ENTRIES and f.values > 2 and not is_table(f.name, owners.get(f.name))
    ]
    others = [facts for facts in judged if not _is_drawn(facts)]
    still = [facts for facts in judged if _is_drawn(facts)]
    if still and others:  # they are read again only then
        doubtful = _have_hardly_left(subject, others)
        still = [f for f in still if not _was_moved(subject, f.name, doubtful=doubtful or f.entries < TELLING)]
    if not still or len(still) > len(others):
        return
    stepped = _was_stepped(subject) or bool(subject.optimizer is not None and subject.optimizer.state)
    last = still[0] is judged[-1]
    if subject.model is None:  # what is last a file does not tell: a head's outputs are no other matrix's inputs
        last = not any(_reads(facts, still[0]) for facts in others)
    head = len(still) == 1 and last  # a new head on a trained body, about to be trained
    trained = stepped or (not head and _have_learned(subject, others))
    first = still[0]
    yield Finding(
        severity="warning" if trained else "note",
        where=first.name,
        says=f"{_names(still)} still {_have(still)} initial values: all {first.entries} entries of {first.name} lie "
        f"within the bound of {first.start}'s initialization, reach it and are uniform below it, while {len(others)} other "
        "matrices exceed every such bound.",
        remedy="check that it is trained (in the optimizer, reached by the loss) and that the checkpoint was loaded whole: "
        "load_state_dict(..., strict=True)",
        evidence=tuple(
            evidence("entries at their initialization", facts.entries, where=facts.name) for facts in still[:20]
        ),
    )


def _reads(facts: WeightFacts, before: WeightFacts) -> bool:
    """Whether a matrix may be given another's outputs: as many inputs, or of a convolution a number for each of its places."""
    inputs, outputs = facts.shape[1], before.shape[0]
    flattened = len(before.shape) > 2 and len(facts.shape) == 2
    return inputs == outputs or (flattened and inputs % outputs == 0)


def _is_drawn(facts: WeightFacts) -> bool:
    return bool(facts.start) and (facts.start == "PyTorch" or facts.entries >= TELLING)


CLEARLY = 12
"""Of matrices with so many entries over the bound one in 160,000 that moved as far has none."""


def _have_hardly_left(subject: Subject, others: list[WeightFacts]) -> bool:
    """Whether so few entries of the others are over PyTorch's bound that some moved matrix may have none there."""
    some = others[:: -(-len(others) // PARTS) or 1]
    over = sorted(entries_over(_entries(subject, facts.name)) for facts in some)
    return bool(over) and over[len(over) // 2] < CLEARLY


def _entries(subject: Subject, name: str) -> Tensor:
    return torch.as_tensor(subject.weights[name].values())


def _was_moved(subject: Subject, name: str, *, doubtful: bool) -> bool:
    """Whether the optimizer keeps a gradient of it, or where in doubt its entries were not drawn: then it was trained."""
    if doubtful and has_left(_entries(subject, name)):
        return True
    own = {} if subject.model is None else dict(subject.model.named_parameters())
    if subject.optimizer is None or name not in own:
        return False
    state = subject.optimizer.state.get(own[name], {})
    return any(isinstance(value, torch.Tensor) and value.ndim > 0 and bool(value.any()) for value in state.values())


def _have_learned(subject: Subject, others: list[WeightFacts]) -> bool:
    """Whether the others were trained, not drawn by another law: a checkpoint is, a model shows it by its spectra or its loss."""
    if any(facts.learned for facts in others) or (subject.model is None and len(others) > 1):
        return True
    if subject.model is None or not subject.has("loss"):
        return False
    from theodolite.evidence.constant_answers import constant_loss
    from theodolite.evidence.task import scores

    own = scores(subject)[0]
    return own is not None and own.loss < (1 - PART) * constant_loss(subject)


def _was_stepped(subject: Subject) -> bool:
    return subject.run is not None and bool(subject.run.moments)


def _names(found: list[WeightFacts]) -> str:
    return found[0].name + (f" and {len(found) - 1} more" if len(found) > 1 else "")


def _have(found: list[WeightFacts]) -> str:
    return "has its" if len(found) == 1 else "have their"


def _held(subject: Subject) -> set[str] | None:
    """The names of the parameters that some group of the optimizer holds; None where there is no optimizer."""
    if subject.optimizer is None or subject.model is None:
        return None
    held = {id(p) for group in subject.optimizer.param_groups for p in group["params"]}
    return {name for name, p in subject.model.named_parameters() if id(p) in held}


ailment = Ailment(question="Has a layer not been trained?", needs={"weights"}, judge=judge, laws=("marchenko-pastur",))
