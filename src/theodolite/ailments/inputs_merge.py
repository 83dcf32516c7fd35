r"""Do different inputs become the same on their way to the last layer?

In the ordered phase the cosine of any two inputs tends to 1 with a depth scale $\xi=-1/\ln\chi$; at a critical point it still
does, as $1/L^2$ for ReLU. Judged is the share of the mean square by which samples differ where the last layer reads it, beside
the input's own: what is below 1e-6 drowns (rounding leaves 1e-14 in float32, and a weight must tell differences a thousandth
of the signal apart); what has merely shrunk tenfold over many layers counts only where a path around the layers, or the
critical initialization, tried on a copy trains clearly better. Batch normalization and paths around layers show in what is
measured. Drowning is a fact of rounding; the other sign must be followed by a trial that wins by three standard errors over 8
parts of the data or more, which chance does once in 100.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import fresh, fresh_residual, stack
from theodolite.ailments._common.network import is_fit, learnt, remedy_of_depth, severity
from theodolite.ailments._common.trials import told
from theodolite.core.ailment import Ailment, Finding
from theodolite.measure.propagation.one_pass import VitalSigns

MERGED, SHRUNK = 1e-6, 0.2
DROWNS, DEPTH = 5, 8
"""Layers from which on merging is one of depth."""

BETTER = 0.2
FIT = 0.85
"""A network that has learnt that much, on held-out data where there are any, has no need of its inputs apart."""


def merging(signs: VitalSigns) -> float:
    """The share by which samples differ at the last layer, beside that of the input."""
    first, last = signs.layers[0].input_unlike, signs.layers[-1].input_unlike
    return last / first if first > 0 else 1.0


def is_shrunk_by_slope(signs: VitalSigns) -> bool:
    """Whether the activation's own slope is so small that gradients vanish first: then that is the name for it."""
    slopes = [layer.steepest for layer in signs.layers[:-1] if layer.activation]
    return bool(slopes) and max(slopes) < 0.5 and len(signs.layers) < 30


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or len(signs.layers) < 3 or learnt(chart, held_out=True) >= FIT:
        return
    ratio = merging(signs)
    if not ratio < SHRUNK or is_shrunk_by_slope(signs) or any((layer.dead or 0) > 0.9 for layer in signs.layers):
        return
    drowned = ratio < MERGED
    if len(signs.layers) < (DROWNS if drowned else DEPTH):
        return
    text, suggested, tried = remedy_of_depth(chart, signs, BETTER)
    if tried is None and (not drowned or is_fit(chart)):
        return
    proof = told(tried, "With the remedy")
    unlike = signs.layers[-1].input_unlike
    yield Finding(
        severity=severity(chart),
        where=signs.layers[-1].name,
        says=f"Different inputs become the same: two whose cosine is {1 - signs.layers[0].input_unlike:.3g} have one of "
        f"1 - {unlike:.2g} behind {len(signs.layers) - 1} layers.{proof}",
        remedy=text,
        suggested=suggested,
        evidence=(
            seen("share by which samples differ at the last layer", unlike),
            seen("beside that of the input", ratio),
        ),
    )


ailment = Ailment(
    question="Do different inputs become the same on their way?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={
        "sick": (fresh("deep GELU", lambda: stack(30, activation=nn.GELU)),),
        "healthy": (fresh("shallow GELU", lambda: stack(3, activation=nn.GELU)), fresh_residual(12)),
    },
    explains=(
        "gradient-vanishes",
        "rank-lost",
        "loss-stalls",
        "layer-untrained",
        "layer-cut-off",
        "trained-too-short",
        "step-too-small",
    ),
    laws=("relu-critical",),
)
