r"""Are the gradients of the first layers far smaller than those of the last?

The mean square of a gradient changes by $\chi=C_w\langle\sigma'^2\rangle$ per layer on the way back; a sigmoid, whose slope is
at most 1/4, has $\chi\le C_w/16$. The symptom is the gradient of a layer relative to its weights, first third of the layers
against the last third: below 3e-3, and three standard deviations beyond what finite width explains (one initialization in 700
exceeds them). This is measured, so skip connections and normalization are taken into account. A trial on a copy with critical
initialization then decides.
"""

import math

from theodolite.core.ailment import times
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_ailment
from theodolite.evidence.layer_signals import gradient_ratio, width_spread
from theodolite.evidence.thresholds import SURE
from theodolite.measure.propagation.one_pass import VitalSigns

LEAST = 3e-3
"""A step that moves the last layers by all of themselves moves the first by less than this: they stay as they were drawn."""


def _told(subject: Subject, signs: VitalSigns) -> tuple[str, str]:
    ratio = gradient_ratio(signs)
    if not (ratio < LEAST and math.log(max(ratio, 1e-300)) < -SURE * width_spread(signs)):
        return "", ""
    less = (
        f"{times(1 / ratio)} times smaller in the first layers than in the last"
        if ratio
        else "zero in the first layers"
    )
    says = f"The gradient vanishes: relative to the weights, it is {less}."
    return says, signs.layers[0].name


ailment = depth_ailment(
    _told,
    question="Does the gradient vanish?",
    rank=20,
    also=", or a skip connection around every few layers",
    paths=True,
    laws=("relu-critical",),
)
