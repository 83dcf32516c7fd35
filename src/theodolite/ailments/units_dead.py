"""Are units dead: constant on every input, so that no gradient can revive them?

A unit is dead if its activation has zero slope on all of 256 samples. At a critical initialization a ReLU is active on half of
a Gaussian input, so a unit is off on n independent samples with probability $2^{-n}$. Similar samples switch off more, and
healthy networks can lose a third of a layer, deep plain ones half at the start. A share alone is therefore not enough: 70 % of
a layer is the symptom, and training from the critical initialization, tried on a copy, decides. A whole layer that is off, with
no gradient before it, is reported without a trial.
"""

import math
from collections.abc import Iterator

from theodolite.core.ailment import Finding, evidence
from theodolite.core.run import Run
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_ailment, remedy_for, remedy_since_training
from theodolite.evidence.layer_signals import activation_in, signals, signals_at_start
from theodolite.evidence.start import origin_tensors
from theodolite.evidence.thresholds import MOST, NEARLY_ALL, WORTH
from theodolite.evidence.trial import present_skill
from theodolite.measure.propagation.one_pass import LayerSigns, VitalSigns

GONE = 1e-9
"""A tangent kernel beside its start below which no weight makes a difference any more."""


def _dead(signs: VitalSigns | None) -> list[LayerSigns]:
    layers = () if signs is None else signs.layers
    return [layer for layer in layers if (layer.dead or 0.0) >= (MOST if layer.units > 1 else 1.0)]


def judge(subject: Subject) -> Iterator[Finding]:
    signs = signals(subject)
    layers = _dead(signs)
    if not layers or signs is None:
        return
    worst = max(layers, key=lambda layer: layer.dead or 0.0)
    learned = present_skill(subject)
    shut = (worst.dead or 0.0) >= NEARLY_ALL and not worst.gradient_norm and not learned > WORTH
    text, suggested = remedy_for(activation_in(signs))
    if origin_tensors(subject) is not None and worst.name not in [
        layer.name for layer in _dead(signals_at_start(subject))
    ]:
        text, suggested = remedy_since_training("dead"), {}
    yield Finding(
        severity="critical" if shut else "note",
        where=worst.name,
        says=_says(layers) + (" No gradient passes through them, and nothing was learned." if shut else ""),
        remedy=text,
        suggested=suggested,
        evidence=tuple(evidence("share of dead units", layer.dead or 0.0, where=layer.name) for layer in layers),
    )


def _says(layers: list[LayerSigns]) -> str:
    worst = max(layers, key=lambda layer: layer.dead or 0.0)
    others = "" if len(layers) == 1 else f", and at least {MOST:.0%} in {len(layers) - 1} other layers"
    return (
        f"{worst.dead or 0.0:.0%} of the {worst.units} units after layer {worst.name} are dead: their {worst.activation} is "
        f"flat on every sample{others}."
    )


def _told(subject: Subject, signs: VitalSigns) -> tuple[str, str]:
    layers = _dead(signs)
    return (_says(layers), layers[0].name) if layers else ("", "")


def while_training(run: Run) -> Iterator[Finding]:
    facts = run.moments[-1].facts if run.moments else {}
    alive, gradient = facts.get("alive", math.nan), facts.get("gradient", math.nan)
    if alive <= GONE or (gradient == 0 and facts.get("step_loss", 0.0) > 0 and len(run.moments) > 1):
        yield Finding(
            severity="critical",
            says="The network is dead: it gives every sample the same output, and no gradient step can change that.",
            remedy="start again with a smaller lr",
        )


ailment = depth_ailment(
    _told, question="Are units dead?", rank=16, judge=judge, while_training=while_training, laws=("relu-critical",)
)
