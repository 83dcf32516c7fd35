"""Does the signal shrink so much through the layers that nothing is left to learn from?

With weights of variance $gC_w$, $g<1$, the mean square of a signal falls to $g^L$ over L layers. The symptom is a fall to a
ten-thousandth, three standard deviations beyond what finite width explains (one initialization in 700 exceeds them), caused
by the weights and not by dead units. A trial on a copy with critical initialization then decides. A fall to 1e-8 in a network
that has learned nothing is reported without a trial, because no step can separate such differences from rounding.
"""

import math
from collections.abc import Iterator

from theodolite.core.ailment import Finding, evidence, times
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_ailment, remedy_for
from theodolite.evidence.layer_signals import activation_in, hidden, signal_ratio, signals, weights_ratio, width_spread
from theodolite.evidence.thresholds import MOST, ROUNDING, SURE, WORTH
from theodolite.evidence.trial import present_skill
from theodolite.measure.propagation.one_pass import VitalSigns

LEAST = 1e-4
"""Numbers a hundredth of what they were."""


def _told(subject: Subject, signs: VitalSigns) -> tuple[str, str]:
    ratio = signal_ratio(signs)
    if not 0 < ratio < LEAST or math.log(ratio) > -SURE * width_spread(signs):
        return "", ""
    if any((layer.dead or 0.0) > MOST for layer in hidden(signs)) and weights_ratio(signs) > LEAST:
        return "", ""  # not the weights but dead units take the signal
    factor = times(1 / ratio)
    says = f"The signal vanishes: over {len(signs.layers)} layers its mean square falls by a factor of {factor}."
    return says, signs.layers[-1].name


def judge(subject: Subject) -> Iterator[Finding]:
    signs = signals(subject)
    says, where = ("", "") if signs is None else _told(subject, signs)
    if signs is None or not says or signal_ratio(signs) > ROUNDING**2 or present_skill(subject) > WORTH:
        return
    text, suggested = remedy_for(activation_in(signs))
    yield Finding(
        severity="critical",
        where=where,
        says=says + " Nothing of the input reaches the last layer.",
        remedy=text,
        suggested=suggested,
        evidence=(evidence("mean square at the last layer, relative to the input", signal_ratio(signs)),),
    )


ailment = depth_ailment(_told, question="Does the signal vanish?", rank=15, judge=judge, laws=("relu-critical",))
