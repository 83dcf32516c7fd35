r"""Do bounded activations sit in their flat ends, where no gradient passes?

Bounded is what stays where it is far out on both sides, whatever its name. A unit is saturated on a sample where the slope is
below 5 % of the steepest: for tanh beyond $|z|=2.2$, which a Gaussian of variance 1 exceeds in 3 % of cases and one of
variance 10 in 49 %. Trained networks saturate and are well, so the share is judged at the start of training where that is
known, and counts only where the model has not learnt its data and the critical initialization, tried on a copy, trains clearly
better. The trial is won by chance once in 100 (three standard errors over 8 parts of the data or more).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, at_weights, seen
from theodolite.ailments._common.examples import fresh, stack
from theodolite.ailments._common.network import (
    activation_in,
    is_fit,
    is_fit_everywhere,
    reinitialized,
    remedy_for,
    severity,
)
from theodolite.ailments._common.trials import told
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.state import untouched
from theodolite.measure.propagation.recurrent_gates import recurrent_saturation

MANY, SURELY = 0.5, 0.9
BETTER = 0.2


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or is_fit_everywhere(chart, 0.9):
        return
    flat = {layer.name: layer.saturated or 0.0 for layer in signs.layers[:-1] if layer.bounded}
    flat.update(recurrent(chart))
    flat = {name: share for name, share in flat.items() if share >= MANY}
    if not flat:
        return
    tried = reinitialized(chart)
    better = tried is not None and tried.is_better(BETTER)
    worst, share = max(flat.items(), key=lambda item: item[1])
    if not better and (tried is not None or share < SURELY or is_fit(chart, 0.1)):
        return
    text, suggested = remedy_for(activation_in(signs))
    proof = told(tried, "From the critical initialization")
    yield Finding(
        severity=severity(chart),
        where=worst,
        says=f"Units are saturated: at {worst} activations are flat (below 5 % of their slope) on {share:.0%} of units and "
        f"samples.{proof}",
        remedy=f"{text}, and inputs of mean 0 and variance 1",
        suggested=suggested,
        evidence=tuple(seen("share of saturated units and samples", share, where=name) for name, share in flat.items()),
    )


def recurrent(chart: Chart) -> dict[str, float]:
    """The share of saturated gates of each recurrent layer, at the start of training."""
    found: dict[str, float] = {}
    model = chart.model
    cells = {} if model is None else {n: m for n, m in model.named_modules() if isinstance(m, nn.RNNBase)}
    if model is None or not cells:
        return found

    def keep(name: str, module: nn.RNNBase, args: Any, output: Any) -> None:
        if args and isinstance(args[0], Tensor) and isinstance(output[0], Tensor):
            share = recurrent_saturation(module, args[0], output[0])
            if share is not None:
                found[name] = share

    with at_weights(model, chart.origin), untouched(model), torch.no_grad():
        for name, cell in cells.items():
            cell.register_forward_hook(functools.partial(keep, name))
        chart.answer(model, chart.batches[0])
    return found


ailment = Ailment(
    question="Are units saturated?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={
        "sick": (fresh("tanh with large weights", lambda: stack(3, activation=nn.Tanh, weight_variance=200.0)),),
        "healthy": (fresh("tanh", lambda: stack(3, activation=nn.Tanh)), fresh("relu", lambda: stack(3))),
    },
    explains=("gradient-vanishes", "loss-stalls", "step-too-small", "trained-too-short"),
)
