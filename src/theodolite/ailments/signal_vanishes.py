r"""Does the signal shrink so much on its way that nothing is left to work on?

With weights of variance $gC_w$, $g<1$, the mean square of a signal falls to $g^L$ of itself over L layers. The sign is a fall
to a ten-thousandth, beyond four deviations of what finite width explains (one draw in 30000 exceeds them), by the weights and
not by dead units. The critical initialization, tried on a copy, decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from theodolite.core.ailment import Ailment
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_interventions
from theodolite.evidence.experiment import Intervention
from theodolite.evidence.layer_signals import signal_ratio, signals, signals_at_start, weights_ratio, width_spread
from theodolite.measure.propagation.one_pass import VitalSigns

LEAST, DEAD = 1e-4, 0.7


def _vanishes(signs: VitalSigns | None) -> bool:
    if signs is None:
        return False
    ratio = signal_ratio(signs)
    if not 0 < ratio < LEAST or math.log(ratio) > -4 * width_spread(signs):
        return False
    dead = any((layer.dead or 0.0) > DEAD for layer in signs.layers[:-1])
    return not (dead and weights_ratio(signs) > LEAST)  # not the weights but dead units take the signal


def sign(subject: Subject) -> bool:
    """Whether next to nothing of the signal is left at the last layer."""
    return _vanishes(signals(subject))


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The critical initialization."""
    signs = signals_at_start(subject)
    if signs is None or not _vanishes(signs):
        return
    says = f"The signal vanishes: its mean square falls {1 / signal_ratio(signs):.2g}-fold over {len(signs.layers)} layers."
    yield from depth_interventions(subject, says, rank=15, where=signs.layers[-1].name)


ailment = Ailment(
    question="Does the signal vanish?",
    needs={"model", "data", "loss"},
    interventions=interventions,
    sign=sign,
    laws=("relu-critical",),
)
