"""Does the signal shrink so much through the layers that nothing is left to learn from?

With weights of variance $gC_w$, $g<1$, the mean square of a signal falls to $g^L$ over L layers. The symptom is a fall to a
ten-thousandth, three standard deviations beyond what finite width explains (one initialization in 700 exceeds them), caused
by the weights and not by dead units. A trial on a copy with critical initialization then decides. A fall to 1e-8 in a network
that has learned nothing is reported without a trial, because no step can separate such differences from rounding.
"""

import math
from collections.abc import Iterator

from theodolite.core.ailment import Ailment, Finding, evidence, times
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_interventions, remedy_for
from theodolite.evidence.experiment import Intervention
from theodolite.evidence.layer_signals import (
    activation_in,
    signal_ratio,
    signals,
    signals_at_start,
    weights_ratio,
    width_spread,
)
from theodolite.evidence.thresholds import MOST, ROUNDING, SURE, WORTH
from theodolite.evidence.trial import present_skill
from theodolite.measure.propagation.one_pass import VitalSigns

LEAST = 1e-4
"""Numbers a hundredth of what they were: a bias of the same size as the weights drowns them."""


def _vanishes(signs: VitalSigns | None) -> bool:
    if signs is None:
        return False
    ratio = signal_ratio(signs)
    if not 0 < ratio < LEAST or math.log(ratio) > -SURE * width_spread(signs):
        return False
    dead = any((layer.dead or 0.0) > MOST for layer in signs.layers[:-1])
    return not (dead and weights_ratio(signs) > LEAST)  # not the weights but dead units take the signal


def sign(subject: Subject) -> bool:
    """Whether next to nothing of the signal is left at the last layer."""
    return _vanishes(signals(subject))


def judge(subject: Subject) -> Iterator[Finding]:
    signs = signals(subject)
    if signs is None or not _vanishes(signs) or signal_ratio(signs) > ROUNDING**2 or present_skill(subject) > WORTH:
        return
    text, suggested = remedy_for(activation_in(signs))
    yield Finding(
        severity="critical",
        where=signs.layers[-1].name,
        says=_says(signs) + " Nothing of the input is left at the end.",
        remedy=text,
        suggested=suggested,
        evidence=(evidence("mean square at the last layer, relative to the input", signal_ratio(signs)),),
    )


def _says(signs: VitalSigns) -> str:
    factor = times(1 / signal_ratio(signs))
    return f"The signal vanishes: over {len(signs.layers)} layers its mean square falls by a factor of {factor}."


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The critical initialization."""
    signs = signals_at_start(subject)
    if signs is None or not _vanishes(signs):
        return
    yield from depth_interventions(subject, _says(signs), rank=15, where=signs.layers[-1].name)


ailment = Ailment(
    question="Does the signal vanish?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
    sign=sign,
    laws=("relu-critical",),
)
