r"""Are the gradients of the first layers far smaller than those of the last?

The mean square of a gradient changes by $\chi=C_w\langle\sigma'^2\rangle$ per layer on the way back; a sigmoid, whose slope is
at most 1/4, has $\chi\le C_w/16$. The symptom is the gradient of a layer relative to its weights, first third of the layers
against the last third: below 3e-3, and three standard deviations beyond what finite width explains (one initialization in 700
exceeds them). This is measured, so skip connections and normalization are taken into account. A trial on a copy with critical
initialization then decides.
"""

import math
from collections.abc import Iterator

from theodolite.core.ailment import Ailment, times
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_interventions
from theodolite.evidence.experiment import Intervention
from theodolite.evidence.layer_signals import gradient_ratio, signals, signals_at_start, width_spread
from theodolite.evidence.thresholds import SURE
from theodolite.measure.propagation.one_pass import VitalSigns

LEAST = 3e-3


def _vanishes(signs: VitalSigns | None) -> bool:
    if signs is None:
        return False
    ratio = gradient_ratio(signs)
    return ratio < LEAST and math.log(max(ratio, 1e-300)) < -SURE * width_spread(signs)


def sign(subject: Subject) -> bool:
    """Whether the first layers get next to no gradient."""
    return _vanishes(signals(subject))


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The critical initialization, or paths around layers."""
    signs = signals_at_start(subject)
    if signs is None or not _vanishes(signs):
        return
    says = (
        f"The gradient vanishes: relative to the weights the first layers get {times(1 / gradient_ratio(signs))} times less "
        "than the last."
    )
    yield from depth_interventions(
        subject,
        says,
        rank=20,
        where=signs.layers[0].name,
        also=", or a skip connection around every few layers",
        paths=True,
    )


ailment = Ailment(
    question="Does the gradient vanish?",
    needs={"model", "data", "loss"},
    interventions=interventions,
    sign=sign,
    laws=("relu-critical",),
)
