r"""Does the last activation keep the outputs from reaching what the loss asks for?

This is measured: the output of the last layer is replaced by free numbers, which descend on the loss sample by sample. Where
they end is the floor that the function after that layer puts under the loss; the same descent on the outputs themselves gives
the floor of the loss alone. A softmax before a cross-entropy that applies its own softmax cannot go below $\ln(1+(C-1)e^{-1})$.
The gap is exact up to the descent and is compared with the loss when ignoring the input. Log-softmax with the negative
log-likelihood, a sigmoid with its cross-entropy, and a tanh whose targets lie within (-1, 1) have no gap. If the floor is
reached but outputs are cut on one side (a ReLU on logits), the same training without the cut, tried on a copy, decides.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, evidence, figure
from theodolite.core.subject import Subject, once
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.loss_checks import cross_entropy_for, entropy_loss
from theodolite.evidence.output_tail import OutputTail, floors, is_entrywise, output_tail, reach, reach_of_entries
from theodolite.evidence.task import is_finite, task
from theodolite.evidence.thresholds import CRITICAL, NOTHING, THOUSANDFOLD, WORTH
from theodolite.evidence.trial import Change, present_skill
from theodolite.io.batches import Batch

PLAIN = "remove the last activation: this loss expects the plain outputs of the last layer"


@dataclass(frozen=True)
class Squash:
    """The least loss with the function after the last layers, without it, and when ignoring the input."""

    floor: float
    free: float
    constant: float
    says: str

    @property
    def gap(self) -> float:
        """The share of the attainable fall of the loss that is out of reach."""
        return (self.floor - self.free) / (self.constant - self.free)


@once("squash")
def squash(subject: Subject) -> Squash | None:
    """The floor that the last activation puts under the loss, where that is above the least of any outputs."""
    tail = output_tail(subject) if is_finite(subject) else None
    constant = constant_loss(subject)
    if tail is None or tail.plain or constant != constant or task(subject).coupled:
        return None  # where answers are compared with each other, what squashes them is part of the loss
    try:
        floor, free = floors(tail)
    except (RuntimeError, ValueError, IndexError):  # the loss refuses outputs outside its range: it asks for a squash
        return None
    words = _range(tail)
    if not words or not constant > free or not floor - free > NOTHING * (constant - free):
        return None
    says = (
        f"The function after layer {_squashed_layers(tail)} squashes the outputs: they are {words}, so the loss cannot fall "
        f"below {figure(floor)}. Without it the loss could reach {_least(free, constant)}; ignoring the "
        f"input gives {figure(constant)}."
    )
    return Squash(floor, free, constant, says)


def judge(subject: Subject) -> Iterator[Finding]:
    found, tail = squash(subject), output_tail(subject) if is_finite(subject) else None
    if found is None or tail is None:
        return
    learned = present_skill(subject)
    severe = found.gap > CRITICAL and not learned >= CRITICAL
    remedy, suggested = _remedy(tail)
    yield Finding(
        severity="critical" if severe else "warning" if found.gap > WORTH else "note",
        where=_squashed_layers(tail),
        says=found.says,
        remedy=remedy,
        suggested=suggested,
        evidence=(evidence("least loss within reach", found.floor), evidence("least loss of any output", found.free)),
    )


def _squashed_layers(tail: OutputTail) -> str:
    """The last layers whose entries are bounded, where each has its own; else all."""
    low, high = reach_of_entries(tail)
    bounded = (high - low < THOUSANDFOLD).flatten(0, -2).any(0)
    own = torch.split(bounded, list(tail.widths)) if is_entrywise(tail) else []
    some = [name for name, part in zip(tail.layers, own, strict=False) if bool(part.any())]
    return " and ".join(some or tail.layers)


def _least(free: float, constant: float) -> str:
    return "0" if abs(free) < NOTHING * abs(constant) else f"{free:.2g}"


def _range(tail: OutputTail) -> str:
    low, high = reach(tail)
    if low == high:
        return f"{low:.3g} whatever the input"
    if high - low < THOUSANDFOLD:
        return f"between {low:.3g} and {high:.3g}"
    if low > -THOUSANDFOLD:
        return f"never below {low:.3g}"
    lows, highs = reach_of_entries(tail)
    some = highs - lows < THOUSANDFOLD
    share = float(some.double().mean())
    return (
        f"between {float(lows[some].min()):.3g} and {float(highs[some].max()):.3g} in {share:.0%} of them"
        if share
        else ""
    )


def _remedy(tail: OutputTail) -> tuple[str, dict[str, str]]:
    """What to type: no activation, or the one that gives probabilities where the loss takes nothing else."""
    try:
        with torch.no_grad():
            beyond = float(tail.loss_of(2.0 + tail.outputs))
        if beyond != beyond:
            raise ValueError("not a number")
    except (RuntimeError, ValueError):
        text = (
            "nn.Sigmoid() in place of the last activation; or none, with F.binary_cross_entropy_with_logits as the loss"
        )
        return text, {"last activation": "sigmoid"}
    return PLAIN, {"remove": "last activation"}


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Training on the last layer's own output, where what follows cuts it on one side, or puts a floor under the loss."""
    tail = output_tail(subject) if is_finite(subject) else None
    if tail is None or tail.plain or tail.given.shape != tail.outputs.shape or task(subject).coupled:
        return
    (low, high), found = reach(tail), squash(subject)
    where = _squashed_layers(tail)
    cut_below = high - low >= THOUSANDFOLD and low > -THOUSANDFOLD
    if not (cut_below or found) or task(subject).kind == "unknown":
        return
    bare = Change("without the last activation", prepare=partial(_bypass, tail.layers))
    classes = "" if task(subject).kind == "numbers" else ": class scores must be unbounded"
    says = (
        found.says
        if found
        else f"The activation after layer {where} keeps outputs from going below {low:.3g}{classes}."
    )
    gone = {"remove": "last activation"}
    yield Intervention(bare, found_by(says, PLAIN, gone, where=where), rank=9, sign=True)
    entropy = cross_entropy_for(subject) if cut_below else None
    if entropy is not None:
        loss: Callable[[nn.Module, Batch], Tensor] = entropy_loss(subject, entropy)
        change = Change(
            "without the last activation, cross-entropy",
            prepare=partial(_bypass, tail.layers),
            loss=loss,
            scored_by=loss,
        )
        text = "remove the last activation, with F.cross_entropy(output, target) as the loss"
        yield Intervention(change, found_by(says, text, gone, where=where), rank=9, sign=True, alike=False)


def _bypass(layers: tuple[str, ...], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change by which a model answers with its last layers' own outputs."""
    kept: dict[str, Any] = {}
    for name in layers:
        model.get_submodule(name).register_forward_hook(
            lambda module, args, output, name=name: kept.update({name: output})
        )
    model.register_forward_hook(lambda module, args, output: torch.cat([kept[name] for name in layers], -1))


ailment = Ailment(
    question="Does the last activation keep the loss from falling?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
)
