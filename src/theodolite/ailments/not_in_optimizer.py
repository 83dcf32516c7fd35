"""Are trainable parameters missing from the optimizer?

Exact: a parameter with a gradient that is in no group of the optimizer never changes. One that requires no gradient is frozen
on purpose and is not named. A trial with those parameters in the optimizer shows how much it matters. If they are still at
their initialization it is always a warning, because nothing was ever learned in them. So it is where every forward pass makes
its own parameters.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import nn

from theodolite.core.ailment import Ailment, Finding, evidence, few_of
from theodolite.core.run import Run
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import asked_batch
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.layer_signals import parameters_held, signals
from theodolite.evidence.start import origin_tensors
from theodolite.evidence.thresholds import CRITICAL
from theodolite.evidence.trial import Change, held_too, present_skill
from theodolite.evidence.weights import weight_facts

MISSING, IDLE = "in no group", "without a gradient"
"""Why a step does not change a parameter."""


def _missing(subject: Subject) -> list[str]:
    """The trainable parameters with a gradient that no group holds and that nobody else has moved."""
    held, signs = parameters_held(subject), signals(subject)
    idle = set() if signs is None else {*signs.untouched, *signs.zero}
    own = {name: p for name, p in subject.model.named_parameters() if p.requires_grad}
    return [n for n, p in own.items() if id(p) not in held and n not in idle and not _moved(subject, n, p)]


def _moved(subject: Subject, name: str, parameter: torch.Tensor) -> bool:
    """Whether a parameter is not what it was at the start: another optimizer holds it."""
    start = (origin_tensors(subject) or {}).get(name)
    return start is not None and not torch.equal(start.to(parameter), parameter.detach())


def _says(subject: Subject, names: Sequence[str]) -> str:
    own = dict(subject.model.named_parameters())
    trainable = sum(p.numel() for p in own.values() if p.requires_grad)
    share = sum(own[name].numel() for name in names) / max(1, trainable)
    plural, change = ("parameters are", "change") if len(names) > 1 else ("parameter is", "changes")
    return (
        f"{len(names)} trainable {plural} not in the optimizer and never {change} ({share:.0%} of all weights): "
        f"{few_of(names)}."
    )


def _unregistered(subject: Subject) -> list[tuple[str, bool]]:
    """Weights in an attribute that no module knows of, so nobody trains them, and whether it holds tensors alone.

    These are layers in a plain list, tuple or dict, or tensors that require a gradient and are no nn.Parameter of the model.
    """
    own, held, found = (
        set(map(id, (*subject.model.modules(), *subject.model.parameters()))),
        parameters_held(subject),
        [],
    )
    for path, module in subject.model.named_modules():
        for name, value in vars(module).items():
            if name in ("_modules", "_parameters", "_buffers"):
                continue
            parts = (
                value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
            )
            aside = [m for m in parts if isinstance(m, nn.Module | torch.Tensor) and id(m) not in own]
            layers = [m for m in aside if isinstance(m, nn.Module) and value is not m]
            tensors = [
                t for t in aside if isinstance(t, torch.Tensor) and t.is_leaf and t.requires_grad and id(t) not in held
            ]
            if any(id(p) not in held and p.requires_grad for m in layers for p in m.parameters()):
                found.append((f"{path}.{name}".lstrip("."), False))
            elif tensors and _has_slope(subject, tensors):
                found.append((f"{path}.{name}".lstrip("."), True))
    return found


def _has_slope(subject: Subject, tensors: list[torch.Tensor]) -> bool:
    """Whether the loss depends on one of them: what was kept of a pass is no weight."""
    with untouched(subject.model), torch.enable_grad():
        slopes = torch.autograd.grad(subject.loss_on(asked_batch(subject)), tensors, allow_unused=True)
    return any(slope is not None for slope in slopes)


def _made_in_forward(run: Run) -> Iterator[Finding]:
    if told := run.silent.get("layer made in forward"):
        yield Finding(
            severity="warning",
            says=f"Each of the first {told[0]} passes made new parameters, of shapes {told[1]}: no optimizer "
            "holds them, and they are drawn again every time.",
            remedy="create the layer in __init__, before the optimizer, and only call it in forward",
        )


def judge(subject: Subject) -> Iterator[Finding]:
    yield from () if subject.run is None else _made_in_forward(subject.run)
    aside = _unregistered(subject)
    if aside:
        name, tensors = aside[0]
        what = (
            "is a tensor that requires a gradient but not an nn.Parameter"
            if tensors
            else "keeps layers in a plain Python list"
        )
        yield Finding(
            severity="critical" if not present_skill(subject) >= CRITICAL else "warning",
            where=name,
            says=f"{name} {what}: model.parameters() does not list its weights, so the optimizer never trains them and a "
            "checkpoint does not save them.",
            remedy="nn.Parameter(...)" if tensors else "nn.ModuleList([...]) (or nn.ModuleDict) in place of the list",
            suggested={"parameter" if tensors else "module_list": [path for path, one in aside if one == tensors]},
            evidence=(evidence("attributes with weights that are not registered", len(aside)),),
        )
    names = _missing(subject)
    if not names:
        return
    held = parameters_held(subject)
    none = not any(id(p) in held for p in subject.model.parameters())
    whole = " The optimizer holds none of the model's parameters, so no step changes the model." if none else ""
    yield Finding(
        severity="critical" if none else "warning" if _are_drawn(subject, names) else "note",
        where=names[0],
        says=_says(subject, names) + whole,
        remedy=_remedy(subject),
        suggested={"add_to_optimizer": names},
        evidence=(evidence("parameters in no group", len(names)),),
    )


def _are_drawn(subject: Subject, names: Sequence[str]) -> bool:
    """Whether one of them has the entries of a first draw: a pre-trained one may well be left out on purpose."""
    facts = weight_facts(subject)
    own = [facts[name] for name in names if name in facts]
    return any(one.start or (one.normal and not one.learned) for one in own)


def _remedy(subject: Subject) -> str:
    kind = type(subject.optimizer).__name__
    return (
        f"optimizer = {kind}(model.parameters(), ...), created after the last layer was added; p.requires_grad_(False) for those "
        "that should stay fixed"
    )


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same training with all parameters in the optimizer."""
    names = _missing(subject)
    if names:
        found = found_by(_says(subject, names), _remedy(subject), {"add_to_optimizer": names}, where=names[0])
        yield Intervention(Change("all in optimizer", prepare=partial(held_too, names)), found, rank=4, sign=True)


def while_training(run: Run) -> Iterator[Finding]:
    yield from _made_in_forward(run)
    told = {why: own for why, own in run.left_out.items() if own}
    if not told:
        return
    missing = list(told.get(MISSING, ()))
    remedies = ["add them to the optimizer"] if missing else []
    remedies += ["let the loss depend on them"] if told.get(IDLE) else []
    yield Finding(
        severity="note",
        says=f"No step changes these trainable parameters: {', '.join(f'{few_of(own)} ({why})' for why, own in told.items())}.",
        remedy=f"{', '.join(remedies)}, or p.requires_grad_(False)",
        suggested={"add_to_optimizer": missing} if missing else {},
    )


ailment = Ailment(
    question="Are trainable parameters missing from the optimizer?",
    needs={"model", "data", "loss", "optimizer"},
    judge=judge,
    interventions=interventions,
    while_training=while_training,
)
