"""A design of a network that is there: its sizes read off one pass, its step size tried, its faults those that ailments find."""

import math
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from theodolite.core.checks import InputError
from theodolite.evidence.batches import price
from theodolite.evidence.layer_signals import activation_in, hidden, signals
from theodolite.verbs.diagnosis import Diagnosis, diagnose
from theodolite.verbs.step_sizes import StepSizes, find_lr
from theodolite.verbs.subjects import subject_to_judge


@dataclass(frozen=True)
class DesignedNetwork:
    """What was read off a module: its size, its nonlinearity, what a step costs (nominal seconds of one core), and trials of it.

    ``steps`` are the step sizes that were tried with its optimizer, None where there is none; ``found`` is the diagnosis.
    """

    parameters: int
    depth: int
    width: int
    activation: str
    step_seconds: float
    found: Diagnosis
    steps: StepSizes | None = None

    @property
    def words(self) -> str:
        """Its size, price and step size in sentences."""
        told = f"{self.parameters:,} parameters; a step takes {self.step_seconds:.2g} s on one core."
        if self.steps is None:
            return told + " Pass optimizer= for the best learning rate."
        told += f" {self.steps.headline}"
        if self.steps.noise_scale is not None:
            told += f" Batches above {self.steps.noise_scale:.3g} samples gain little: that is the noise scale of its gradient."
        return told

    def document(self) -> dict[str, Any]:
        """What `json` writes of it."""
        kept = ("parameters", "depth", "width", "activation", "step_seconds")
        return {name: getattr(self, name) for name in kept} | {"step_sizes": self.steps and asdict(self.steps)}


def designed_network(
    model: nn.Module, *, data: Any, loss: Callable[[Any, Any], Any] | None, optimizer: Any, steps: int
) -> DesignedNetwork:
    """One pass for the sizes, trials for the step size, and every ailment."""
    if data is None or loss is None:
        raise InputError("expected data with targets and a loss with a module, got less; pass data= and loss=")
    subject = subject_to_judge(model, data=data, loss=loss)
    signs = signals(subject)
    if signs is None or not hidden(signs):
        raise InputError(
            "expected a module with hidden layers that runs on the data, got none; call it on a batch to see why"
        )
    activation = activation_in(signs)
    if activation is None:
        raise InputError(
            "expected an activation after most hidden layers, got none that is known; pass only activation="
        )
    return DesignedNetwork(
        parameters=sum(p.numel() for p in model.parameters()),
        depth=len(hidden(signs)),
        width=int(statistics.median(layer.units for layer in hidden(signs))),
        activation=activation,
        step_seconds=price(subject).step(len(subject.data.first())),
        found=diagnose(model, data=data, loss=loss, optimizer=optimizer, steps=steps),
        steps=None if optimizer is None else find_lr(model, data, loss, optimizer, steps=steps),
    )


def columns(data: Any) -> Any:
    """Inputs and targets where the data are two tensors of numbers, whose scale a design can take; else None."""
    if not isinstance(data, tuple) or len(data) != 2 or not isinstance(data[0], torch.Tensor):
        return None
    return data if data[0].is_floating_point() and math.isfinite(float(data[0].sum())) else None
