"""Does no gradient reach parameters that the outputs depend on?

Exact, on two batches and at three points. Parameters that require a gradient get none, or one that is zero in every entry, even
after a small random change of all weights (so layers and branches that start at zero on purpose pass) and with weights so small
that no unit is saturated; and other values in their place change the loss, so they are in use. Unused parameters do no harm and
are reported as a note, but for the weights that carry the state of a recurrent layer from place to place: without them it reads
one place of each sequence. Parameters that are not in the optimizer were left out on purpose.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from theodolite.core.ailment import Ailment, Finding, few_of
from theodolite.core.model_wrappers import copied_model
from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import batches, first_rows
from theodolite.evidence.layer_signals import signals
from theodolite.evidence.thresholds import CRITICAL, NEARLY_ALL, WORTH
from theodolite.evidence.trial import present_skill
from theodolite.evidence.widening import layers_run
from theodolite.io.batches import Batch

SMALL = 1e-4
"""By this factor weights are made smaller: inputs in units of thousands then saturate nothing."""


def judge(subject: Subject) -> Iterator[Finding]:
    cut, unused = cut_and_unused(subject)
    if subject.model is None or not (cut or unused):
        return
    held = None if subject.optimizer is None else {id(p) for g in subject.optimizer.param_groups for p in g["params"]}
    own = dict(subject.model.named_parameters())
    if held is not None:
        cut, unused = ([n for n in names if id(own[n]) in held] for names in (cut, unused))
    carried = [] if cut else _reads_one_state(subject, unused)
    for names, words, remedy in (
        (cut, "the outputs depend on them, but no gradient reaches them", ""),
        (
            carried,
            "the loss reads only the first position of each sequence, before the layer has carried anything on",
            "read the last state, output[:, -1] with batch_first=True, in place of output[:, 0]",
        ),
        (unused, "nothing uses them", ""),
    ):
        if names:
            numbers = sum(own[name].numel() for name in names)
            harm = names is not unused and held is not None
            yield Finding(
                severity="note"
                if not harm
                else "warning"
                if present_skill(subject) > WORTH or numbers < CRITICAL * _size(own)
                else "critical",
                where=names[0].rpartition(".")[0],
                says=f"{len(names)} parameter{'s are' if len(names) > 1 else ' is'} cut off from the loss: {words} "
                f"({numbers:,} numbers in {few_of(names)}).",
                remedy=remedy
                or "look for detach(), no_grad(), .item(), argmax, round or numpy after layer "
                f"{names[-1].rpartition('.')[0]}; if it is on purpose, requires_grad_(False)",
            )
            return


@once("cut off")
def cut_and_unused(subject: Subject) -> tuple[list[str], list[str]]:
    """The parameters that the loss depends on without a gradient, and those that it does not depend on."""
    signs = signals(subject)
    if signs is None or subject.model is None:
        return [], []
    # where a layer is dead zeros are those of its units
    shut = any((layer.dead or 0.0) >= NEARLY_ALL for layer in signs.layers[:-1])
    suspects = [*signs.untouched, *(() if shut else signs.zero)]
    if not suspects or not any(p.requires_grad for p in subject.model.parameters()):
        return [], []
    cut, unused = cut_off(subject, suspects)
    # with no gradient at all what the loss does not depend on is not at fault
    return cut, unused if signs.gradient_norm > 0 else []


def _reads_one_state(subject: Subject, unused: Sequence[str]) -> list[str]:
    """Recurrent weights that are all unused though the first ones are not, and sequences have several places."""
    if not any("weight_hh" in name for name in unused):
        return []
    one = first_rows(batches(subject)[0], 2)
    found = []
    for name, (module, output) in layers_run(subject.model, *one.inputs, **one.keywords).items():
        if not isinstance(module, nn.RNNBase) or output.ndim != 3 or output.shape[1 if module.batch_first else 0] < 2:
            continue
        every = [f"{name}.{key}".lstrip(".") for key, _ in module.named_parameters() if key.startswith("weight_hh")]
        found += every if set(every) <= set(unused) and f"{name}.weight_ih_l0".lstrip(".") not in unused else []
    return found


def _size(own: dict[str, nn.Parameter]) -> int:
    return sum(p.numel() for p in own.values() if p.requires_grad)


def cut_off(subject: Subject, suspects: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the suspects, those that the loss depends on without a gradient, and those that it does not depend on."""
    with untouched(subject.model):
        model = copied_model(subject.model).train()
        _shaken(model, [name for name, _ in model.named_parameters()], 0.02)
        few = batches(subject)[:2]
        still = set(suspects)
        small = _shrunk(model)
        for batch in few:
            still -= _with_gradient(subject, model, batch) | _with_gradient(subject, small, batch)
        # one bias in front of a normalization, or of keys in attention, has no effect by its place: whole modules count
        matrices = {name.rpartition(".")[0] for name in still if dict(model.named_parameters())[name].ndim >= 2}
        still = {name for name in still if name.rpartition(".")[0] in matrices}
        if not still:
            return [], []
        order = [name for name in suspects if name in still]
        before = _loss(subject, model, few[0])
        used = []
        for owner in dict.fromkeys(name.rpartition(".")[0] for name in order):
            names = [name for name in order if name.rpartition(".")[0] == owner]
            kept = {name: dict(model.named_parameters())[name].detach().clone() for name in names}
            _shaken(model, names, 1.0)
            if _loss(subject, model, few[0]) != before:
                used += names
            with torch.no_grad():
                for name, value in kept.items():
                    dict(model.named_parameters())[name].copy_(value)
    return used, [name for name in order if name not in used]


def _with_gradient(subject: Subject, model: nn.Module, batch: Batch) -> set[str]:
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    torch.manual_seed(0)
    with torch.enable_grad():
        value = subject.loss_on(batch, model)
        if not value.requires_grad:
            return set(own)
        slopes: tuple[Any, ...] = torch.autograd.grad(value, list(own.values()), allow_unused=True)
    return {name for name, slope in zip(own, slopes, strict=True) if slope is not None and bool(slope.any())}


@torch.no_grad()
def _shrunk(model: nn.Module) -> nn.Module:
    """A copy whose parameters are so small that no unit is saturated."""
    found = copied_model(model)
    for parameter in found.parameters():
        parameter.mul_(SMALL)
    return found


@torch.no_grad()
def _loss(subject: Subject, model: nn.Module, batch: Batch) -> float:
    torch.manual_seed(0)  # the same dropout masks each time
    return float(subject.loss_on(batch, model))


@torch.no_grad()
def _shaken(model: nn.Module, names: Sequence[str], share: float) -> None:
    """Random numbers added to parameters, of this share of their size; to those at zero, of a tenth."""
    generator = torch.Generator().manual_seed(0)
    own = dict(model.named_parameters())
    for name in names:
        value = own[name]
        if not value.is_floating_point():
            continue
        size = float(value.double().square().mean().sqrt()) or 0.1
        value.add_((share * size * torch.randn(value.shape, generator=generator)).to(value))


ailment = Ailment(
    question="Are there layers that no gradient reaches?", needs={"model", "data", "loss"}, judge=judge, exact=True
)
