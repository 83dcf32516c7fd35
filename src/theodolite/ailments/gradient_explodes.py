r"""Are the gradients of the first layers far larger than those of the last?

In the chaotic phase the mean square of a gradient grows by $\chi>1$ per layer on the way back. The symptom is the gradient of a
layer relative to its weights, first third of the layers against the last third: more than five times larger, in six layers or
more, and beyond what finite width explains. A trial on a copy with critical initialization or skip connections then decides.
"""

import math
from collections.abc import Iterator

from theodolite.core.ailment import Ailment, times
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_interventions
from theodolite.evidence.experiment import Intervention
from theodolite.evidence.layer_signals import gradient_ratio, signals, signals_at_start, width_spread
from theodolite.evidence.thresholds import DEPTH
from theodolite.measure.propagation.one_pass import VitalSigns

GROWN = 5.0
"""So many times more gradient beside their weights than the last is out of proportion: healthy first layers have up to three."""


def _explodes(signs: VitalSigns | None) -> bool:
    if signs is None or len(signs.layers) < DEPTH:
        return False
    ratio = gradient_ratio(signs)
    return ratio > GROWN and math.log(ratio) > width_spread(signs)


def sign(subject: Subject) -> bool:
    """Whether the first layers get far more gradient than the last."""
    return _explodes(signals(subject))


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The critical initialization, or paths around layers."""
    signs = signals_at_start(subject)
    if signs is None or not _explodes(signs):
        return
    ratio = gradient_ratio(signs)
    says = (
        f"The gradient explodes: relative to the weights the first layers get {times(ratio)} times more than the last."
    )
    also = "; until then torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    yield from depth_interventions(subject, says, rank=20, where=signs.layers[0].name, also=also, paths=True)


ailment = Ailment(
    question="Does the gradient explode?",
    needs={"model", "data", "loss"},
    interventions=interventions,
    sign=sign,
    laws=("relu-critical",),
)
