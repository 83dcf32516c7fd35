"""Are bounded activations stuck in their flat ends, where no gradient passes?

Bounded is any activation that levels off on both sides, whatever its name. A unit is saturated on a sample if the slope is
below 5 % of the steepest: for tanh beyond $|z|=2.2$, which a Gaussian of variance 1 exceeds in 3 % of cases and one of variance
10 in 49 %. Well-trained networks saturate too, so half of all units and samples, at the start of training if that is known, is
only the symptom, and a trial on a copy with critical initialization decides.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches
from theodolite.evidence.depth_remedies import depth_interventions, remedy_for, remedy_since_training
from theodolite.evidence.interventions import Intervention
from theodolite.evidence.layer_signals import activation_in, signals, signals_at_start
from theodolite.evidence.output_tail import output_tail
from theodolite.evidence.start import at_weights, origin_tensors
from theodolite.evidence.thresholds import CRITICAL, NEARLY_ALL, WORTH
from theodolite.evidence.trial import present_skill
from theodolite.measure.propagation.one_pass import VitalSigns
from theodolite.measure.propagation.recurrent_gates import recurrent_saturation


def _flat(subject: Subject, signs: VitalSigns | None) -> dict[str, float]:
    """The share of saturated units of each layer where it is large; what bounds the answers themselves is no unit."""
    tail = output_tail(subject)
    last = tail.layers if tail is not None and tail.given.shape == tail.outputs.shape else ()
    layers = [] if signs is None else [layer for layer in signs.layers[:-1] if layer.name not in last]
    return {
        layer.name: layer.saturated or 0.0 for layer in layers if layer.bounded and (layer.saturated or 0.0) >= CRITICAL
    }


def sign(subject: Subject) -> bool:
    """Whether a layer's activations are flat on most samples."""
    return bool(_flat(subject, signals(subject)))


def judge(subject: Subject) -> Iterator[Finding]:
    signs = signals(subject)
    shut = {name: share for name, share in _flat(subject, signs).items() if share >= NEARLY_ALL}
    if signs is None or not shut or present_skill(subject) > WORTH:
        return
    where, share = next(iter(shut.items()))
    text, suggested = remedy_for(activation_in(signs))
    remedy = f"inputs of mean 0 and variance 1 (logarithms if they span many orders of magnitude), and {text}"
    if origin_tensors(subject) is not None and where not in _flat(subject, signals_at_start(subject)):
        remedy, suggested = remedy_since_training("saturated"), {}
    size = signs.layers[0].input_square
    yield Finding(
        severity="critical",
        where=where,
        says=f"Units are saturated: after layer {where} the activation is flat for {share:.0%} of units and samples, so that no "
        f"gradient passes and nothing is learned (the mean square of the inputs is {size:.3g}).",
        remedy=remedy,
        suggested=suggested,
        evidence=tuple(evidence("share of saturated units and samples", v, where=name) for name, v in shut.items()),
    )


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The critical initialization."""
    flat = _flat(subject, signals_at_start(subject)) | _recurrent(subject)
    if not flat:
        return
    worst, share = max(flat.items(), key=lambda item: item[1])
    says = f"Units are saturated: after layer {worst} the activation is flat for {share:.0%} of units and samples."
    yield from depth_interventions(subject, says, rank=17, where=worst, also=", and inputs of mean 0 and variance 1")


def _recurrent(subject: Subject) -> dict[str, float]:
    """The share of saturated gates of each recurrent layer, at the start of training, where it is large."""
    found: dict[str, float] = {}
    model = subject.model
    cells = {} if model is None else {n: m for n, m in model.named_modules() if isinstance(m, nn.RNNBase)}
    if model is None or not cells:
        return found

    def keep(name: str, module: nn.RNNBase, args: Any, output: Any) -> None:
        if args and isinstance(args[0], Tensor) and isinstance(output[0], Tensor):
            share = recurrent_saturation(module, args[0], output[0])
            if share is not None and share >= CRITICAL:
                found[name] = share

    start: Mapping[str, Tensor] | None = origin_tensors(subject)
    with at_weights(model, start), untouched(model), torch.no_grad():
        for name, cell in cells.items():
            cell.register_forward_hook(functools.partial(keep, name))
        subject.answer(batches(subject)[0])
    return found


ailment = Ailment(
    question="Are units saturated?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
    sign=sign,
)
