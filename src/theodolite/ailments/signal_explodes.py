"""Does the signal grow so much through the layers that the first answers are absurd?

At a critical initialization the mean square of a signal stays the same; with weights of variance $gC_w$ it grows $g$-fold per
layer. The symptom is a hundredfold growth from input to output, three standard deviations beyond what finite width explains (one
initialization in 700 exceeds them), with no bounded activation to stop it. A trial on a copy with critical initialization
then decides.
"""

import math
from collections.abc import Iterator

from theodolite.core.ailment import Ailment, times
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_interventions
from theodolite.evidence.experiment import Intervention
from theodolite.evidence.layer_signals import signals, signals_at_start, width_spread
from theodolite.evidence.thresholds import SURE
from theodolite.measure.propagation.one_pass import VitalSigns

GROWN = 100.0
"""Numbers ten times too large: a step that suits the last layer is a hundred times too large for the loss."""


def _growth(signs: VitalSigns | None) -> float:
    """The mean square of the outputs beside that of the inputs, where that is beyond width's own spread; else 0."""
    if signs is None or len(signs.layers) < 2 or any(layer.bounded for layer in signs.layers[:-1]):
        return 0.0
    first, last = signs.layers[0], signs.layers[-1]
    grown = last.mean_square / first.input_square if first.input_square > 0 else 0.0
    return grown if grown > GROWN and math.log(grown) > SURE * width_spread(signs) else 0.0


def sign(subject: Subject) -> bool:
    """Whether the signal grows a hundredfold."""
    return _growth(signals(subject)) > 0


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The critical initialization."""
    signs = signals_at_start(subject)
    grown = _growth(signs)
    if signs is None or not grown:
        return
    grows = f"grows by a factor of {times(grown)}"
    says = f"The signal explodes: over {len(signs.layers)} layers its mean square {grows} at the start."
    yield from depth_interventions(subject, says, rank=17, where=signs.layers[-1].name)


ailment = Ailment(
    question="Does the signal explode?",
    needs={"model", "data", "loss"},
    interventions=interventions,
    sign=sign,
    laws=("relu-critical",),
)
