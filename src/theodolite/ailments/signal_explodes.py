"""Does the signal grow so much through the layers that the first answers are absurd?

At a critical initialization the mean square of a signal stays the same; with weights of variance $gC_w$ it grows $g$-fold per
layer. The symptom is a hundredfold growth from input to output, three standard deviations beyond what finite width explains (one
initialization in 700 exceeds them), with no bounded activation to stop it. A trial on a copy with critical initialization
then decides.
"""

import math

from theodolite.core.ailment import times
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_ailment
from theodolite.evidence.layer_signals import hidden, width_spread
from theodolite.evidence.thresholds import SURE
from theodolite.measure.propagation.one_pass import VitalSigns

GROWN = 100.0
"""Numbers ten times too large, squares a hundred times."""


def _told(subject: Subject, signs: VitalSigns) -> tuple[str, str]:
    if len(signs.layers) < 2 or any(layer.bounded for layer in hidden(signs)):
        return "", ""
    first, last = signs.layers[0], signs.layers[-1]
    grown = last.mean_square / first.input_square if first.input_square > 0 else 0.0
    if not (grown > GROWN and math.log(grown) > SURE * width_spread(signs)):
        return "", ""
    how = f"its mean square grows by a factor of {times(grown)} at the start"
    return f"The signal explodes: over {len(signs.layers)} layers {how}.", last.name


ailment = depth_ailment(_told, question="Does the signal explode?", rank=17, laws=("relu-critical",))
