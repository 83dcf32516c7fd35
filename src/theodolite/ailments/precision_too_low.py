r"""Are the weights kept in so few digits that most of each update is lost?

A weight $w$ with $t$ significant bits changes only when the update exceeds half a unit in its last place, about $2^{-t-1}|w|$
($t=8$ for bfloat16, 11 for float16). One step is taken on copies, in the model's own precision and in float32: an entry is
lost where the float32 step would move it and the own one leaves it bit for bit as it was. It is an ailment where most entries
are lost and the same training in float32 comes down clearly further. The count of lost entries is exact; the trial is won by
chance once in 100 (three standard errors over 8 parts of the data or more).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import batches_of, clouds, network, trained
from theodolite.ailments._common.trials import LONG, SHORT, TrialComparison, does_well, longer_trial, steps_made
from theodolite.core.ailment import Ailment, Finding
from theodolite.io.batches import Batch
from theodolite.measure.dynamics.trial_runs import trial_run

LOW = (torch.bfloat16, torch.float16)
LOST = 0.5
"""The share of entries with an update that must be lost."""
LEAST = 0.15
"""What float32 must take off the loss that training as it is leaves."""


def judge(chart: Chart) -> Iterator[Finding]:
    assert chart.model is not None
    low = [name for name, p in chart.model.named_parameters() if p.dtype in LOW and p.requires_grad]
    if not low:
        return
    dtype = str(chart.model.get_parameter(low[0]).dtype).removeprefix("torch.")
    if not chart.finite:
        yield from _blown_up(chart, dtype, low[0])
        return
    own, full = _one_step(chart, None), _one_step(chart, in_float32)
    if own is None or full is None:
        return
    lost, moved = _lost(chart.model, own, full, low)
    if not moved or lost < LOST * moved:
        return
    share = lost / moved
    tried = _tried(chart)
    matters = tried is not None and tried.is_better(LEAST) and not does_well(chart)
    gained = (
        ""
        if tried is None or not matters
        else (
            f" {len(tried.changed.losses)} steps on a copy take the loss to {tried.as_it_is.after:.3g}, in float32 to "
            f"{tried.changed.after:.3g}."
        )
    )
    yield Finding(
        severity="warning" if matters else "note",
        where=low[0],
        says=f"{share:.0%} of the weights that a step should change stay as they are: the update is below half a unit in the "
        f"last place of {dtype}.{gained}",
        remedy="keep the weights in float32 and compute under torch.autocast; model.float()",
        suggested={"dtype": "float32"},
        evidence=(seen("share of updates lost", share, where=f"weights in {dtype}"),),
    )


def _blown_up(chart: Chart, dtype: str, where: str) -> Iterator[Finding]:
    """Weights that are no numbers any more, where the same training in float32 goes well from the start."""
    tried = None if chart.beginning is None else _tried(chart)
    if tried is None or tried.as_it_is.after < math.inf or not tried.is_better(LEAST):
        return
    yield Finding(
        severity="critical",
        where=where,
        says=f"In {dtype} the training ends in numbers that are not finite after {len(tried.as_it_is.losses)} steps; the same "
        f"steps in float32 take the loss from {tried.changed.before:.3g} to {tried.changed.after:.3g}.",
        remedy="keep the weights in float32 and compute under torch.autocast; model.float()",
        suggested={"dtype": "float32"},
        evidence=(seen("loss after trial steps in float32", tried.changed.after, stderr=tried.changed.stderr),),
    )


def _tried(chart: Chart) -> TrialComparison | None:
    """From the start, and for as long as the run was: what is lost adds up."""
    steps = max(SHORT, min(steps_made(chart), LONG)) if steps_made(chart) else SHORT
    plain = longer_trial(chart, steps=steps)
    if plain is None:
        return None
    made = steps if plain.after == math.inf else len(plain.losses)
    other = longer_trial(chart, "in float32", in_float32, steps=made, loss=_cast_loss(chart))
    return None if other is None else TrialComparison(plain, other)


def _cast_loss(chart: Chart) -> Any:
    def loss(model: nn.Module, batch: Batch) -> Tensor:
        target = batch.target
        if isinstance(target, Tensor) and target.dtype in LOW:
            batch = Batch(batch.inputs, batch.keywords, target.float())
        return chart.loss_on(model, batch.on(model))

    return loss


def in_float32(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Weights and what the optimizer holds of them, in float32."""
    model.float()
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.dtype in LOW:
                state[name] = value.float()


def _one_step(chart: Chart, change: Any) -> Mapping[str, Tensor] | None:
    """The weights of a copy after one step."""
    copies: list[nn.Module] = []

    def remembered(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        copies.append(model)
        if not any(float(group["lr"]) > 0 for group in optimizer.param_groups) and chart.largest_lr:
            for group in optimizer.param_groups:
                group["lr"] = chart.largest_lr
        if change is not None:
            change(model, optimizer)

    if chart.model is None or chart.optimizer is None:
        return None
    few = chart.batches[:1]
    try:
        trial_run(chart.model, chart.optimizer, _cast_loss(chart), training=few, held_out=few, change=remembered)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return None
    return dict(copies[0].named_parameters())


@torch.no_grad()
def _lost(model: nn.Module, own: Mapping[str, Tensor], full: Mapping[str, Tensor], names: list[str]) -> tuple[int, int]:
    """How many entries should have moved but did not, and how many should have."""
    lost = moved = 0
    for name in names:
        before = model.get_parameter(name)
        should = (full[name] != before.float()) & torch.isfinite(full[name])
        lost += int((should & (own[name] == before)).sum())
        moved += int(should.sum())
    return lost, moved


def _short_digits(seed: int, lr: float, dtype: torch.dtype = torch.bfloat16) -> Mapping[str, Any]:
    """A run with Adam."""
    x, y = clouds(seed, 1024)
    held, wanted = clouds(seed + 1000, 512)
    model = network(seed).to(dtype)
    data = batches_of(x.to(dtype), y, 32)
    stepper = torch.optim.Adam(model.parameters(), lr)
    return trained(model, stepper, data, validation=(held.to(dtype), wanted), steps=300)


ailment = Ailment(
    question="Are updates lost to rounding?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("trial",),
    judge=judge,
    examples={
        "sick": (lambda seed: _short_digits(seed, 1e-4),),
        "healthy": (lambda seed: _short_digits(seed, 3e-3), lambda seed: _short_digits(seed, 1e-3, torch.float32)),
    },
    explains=(
        "loss-stalls",
        "step-too-small",
        "trained-too-short",
        "layer-untrained",
        "weights-not-finite",
        "step-too-large",
    ),
)
