r"""Does the signal grow from layer to layer until the answers are absurdly large?

A mean square changes by $C_w\langle\sigma'^2\rangle$ a layer, which is 1 at the critical variance; finite width alone makes a
factor of $e^{\pm4\sqrt{\sum5/n_l}}$ in one draw of 30000. Growth is named only with its harm: the loss of the first answers
lies far above that of the best constant answer, and training from the critical initialization does clearly better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import fresh, fresh_residual, stack
from theodolite.ailments._common.network import activation_in, learnt, reinitialized, remedy_for, severity, width_spread
from theodolite.ailments._common.trials import LONG, longer_trial, told
from theodolite.core.ailment import Ailment, Finding

GROWN = 100.0
"""The factor from the input's mean square to the output's from which on growth is looked into."""

ABSURD, SURELY = 3.0, 30.0
"""The first loss beside that of the best constant answer: looked into, and absurd whatever a trial says."""

BETTER = 0.3
LEARNS = 0.7


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or len(signs.layers) < 2 or min(learnt(chart), learnt(chart, held_out=True)) >= 0.9:
        return
    first, last = signs.layers[0], signs.layers[-1]
    if any(layer.bounded for layer in signs.layers[:-1]) or not first.input_square > 0 or not chart.chance > 0:
        return  # behind a bounded activation nothing grows: its units saturate
    grown, loss = last.mean_square / first.input_square, signs.loss / chart.chance
    late = chart.origin is None and chart.was_trained  # the first answers are not known: the loss has come down since
    if not grown > GROWN or math.log(grown) < 4 * width_spread(signs) or not (loss > ABSURD or late):
        return
    tried = reinitialized(chart)
    better = tried is not None and tried.is_better(BETTER)
    if late and not (better and _trains_from_other_weights(chart)):
        return
    if not better and (loss < SURELY or (tried is not None and not tried.changed.after < 0.1 * tried.as_it_is.after)):
        return
    text, suggested = remedy_for(activation_in(signs))
    proof = told(tried, "From the critical initialization")
    yield Finding(
        severity=severity(chart),
        says=f"The signal explodes: its mean square grows by a factor of {grown:.2g} over {len(signs.layers)} layers, "
        f"and the first "
        f"loss is {signs.loss:.3g}, where a constant answer has {chart.chance:.3g}.{proof}",
        remedy=text,
        suggested=suggested,
        evidence=(
            seen("mean square of the output beside the input's", grown, where=last.name),
            seen("first loss beside a constant answer's", loss),
        ),
    )


def _trains_from_other_weights(chart: Chart) -> bool:
    """Whether the same training comes down from weights as layers draw them: then its start was at fault, not its step."""
    plain = longer_trial(chart, steps=LONG)
    return plain is not None and plain.after < LEARNS * chart.chance


ailment = Ailment(
    question="Does the signal explode on its way through the layers?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={
        "sick": (fresh("weights too large", lambda: stack(10, weight_variance=12.0)),),
        "healthy": (fresh("critical weights", lambda: stack(10, weight_variance=2.0)), fresh_residual(6)),
    },
    explains=(
        "gradient-explodes",
        "step-too-large",
        "units-dead",
        "loss-stalls",
        "trained-too-short",
        "step-too-small",
    ),
    laws=("relu-critical",),
)
