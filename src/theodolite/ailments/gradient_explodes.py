r"""Are the gradients of the first layers far larger than those of the last?

In the chaotic phase the mean square of a gradient grows by $\chi>1$ per layer on the way back. The symptom is the gradient of a
layer relative to its weights, first third of the layers against the last third: more than five times larger, in six layers or
more, and beyond what finite width explains. A trial on a copy with critical initialization or skip connections then decides.
"""

import math

from theodolite.core.ailment import times
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_ailment
from theodolite.evidence.layer_signals import gradient_ratio, width_spread
from theodolite.evidence.thresholds import DEPTH
from theodolite.measure.propagation.one_pass import VitalSigns

GROWN = 5.0
"""So many times more gradient than the last layers have, beside their weights: no step size suits both; a trial decides."""


def _told(subject: Subject, signs: VitalSigns) -> tuple[str, str]:
    ratio = gradient_ratio(signs)
    if len(signs.layers) < DEPTH or not (ratio > GROWN and math.log(ratio) > width_spread(signs)):
        return "", ""
    says = (
        f"The gradient explodes: relative to the weights, it is {times(ratio)} times larger in the first layers than in the "
        "last."
    )
    return says, signs.layers[0].name


ailment = depth_ailment(
    _told,
    question="Does the gradient explode?",
    rank=20,
    also="; until then torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    paths=True,
    laws=("relu-critical",),
)
