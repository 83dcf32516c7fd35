"""Training from its start on standardized data, beside training as it is: the same steps on copies, at several step sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, at_weights
from theodolite.io.batches import Batch
from theodolite.measure.dynamics.trial_runs import trial_run

STEPS = 40
"""Steps of an arm: batches are used again where there are fewer."""


@dataclass(frozen=True)
class Arm:
    """The losses on each held-out batch after the steps, and their mean before; a run that blew up ends in infinity."""

    before: float
    held_out: tuple[float, ...]
    steps: int

    @property
    def after(self) -> float:
        """The mean loss on held-out batches after the steps."""
        return sum(self.held_out) / len(self.held_out)

    def left(self, constant: float) -> tuple[float, ...]:
        """The share of a constant answer's loss that each batch leaves; as a whole at most 1, for a constant has that too."""
        if not self.after < constant:
            return (1.0,) * len(self.held_out)
        return tuple(loss / constant for loss in self.held_out)


def arm(
    chart: Chart,
    *,
    inputs: Callable[[Tensor], Tensor] | None = None,
    targets: Callable[[Tensor], Tensor] | None = None,
    factor: float = 1.0,
    steps: int = STEPS,
) -> Arm | None:
    """A short training from the start with inputs and targets put through these, and the step size times ``factor``.

    None where there is no optimizer, too little data or no time left.
    """
    model, optimizer = chart.model, chart.optimizer
    if model is None or optimizer is None or not chart.has("loss") or len(chart.batches) < 3:
        return None
    if chart.left < 0.15 * chart.budget:
        return None
    batches = [_through(batch, inputs, targets) for batch in chart.batches]
    cut = max(2, len(batches) // 4)
    training, held_out = batches[cut:], batches[:cut]
    training = (training * math.ceil(steps / len(training)))[: max(steps, len(training))]
    told: list[float] = []

    def loss(copied: nn.Module, batch: Batch) -> Tensor:
        value = chart.loss_on(copied, batch)
        told.append(float(value.detach()))
        return value

    try:
        with at_weights(model, chart.beginning):
            run = trial_run(
                model,
                optimizer,
                loss,
                training=training,
                held_out=held_out,
                change=_restarted(chart, factor),
                most_seconds=min(chart.budget / 15, chart.left / 2),
            )
    except (RuntimeError, ValueError, TypeError, IndexError):  # their own forward or loss refuses such data
        return None
    last = told[-len(held_out) :]
    whole = all(map(math.isfinite, (*last, *run.losses)))
    return Arm(run.before, tuple(last) if whole else (math.inf,) * len(last), len(run.losses))


def _restarted(chart: Chart, factor: float) -> Callable[[nn.Module, torch.optim.Optimizer], None]:
    def change(copied: nn.Module, stepper: torch.optim.Optimizer) -> None:
        if chart.beginning is not None:
            stepper.state.clear()
        for group in stepper.param_groups:
            base = float(group.get("initial_lr", group["lr"]))
            group["lr"] = (base if base > 0 else chart.largest_lr) * factor

    return change


def gain(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, float]:
    """By how much the first shares lie below the others in the mean, batch by batch, and the standard error of that."""
    gaps = torch.tensor(other, dtype=torch.float64) - torch.tensor(one, dtype=torch.float64)
    return float(gaps.mean()), float(gaps.std() / math.sqrt(len(gaps)))


def _through(batch: Batch, inputs: Any, targets: Any) -> Batch:
    if inputs is not None:
        batch = replace(batch, inputs=tuple(map(_on(inputs), batch.inputs)), keywords=_values(inputs, batch.keywords))
    if targets is not None:
        batch = replace(batch, target=targets(batch.target))
    return batch


def _on(change: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
    return lambda value: (
        change(value) if isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1 else value
    )


def _values(change: Callable[[Tensor], Tensor], named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _on(change)(value) for name, value in named.items()}
