"""What a watch sees of training between looks: the weights before the last step, the precision it runs in, and who writes."""

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError
from theodolite.measure.dynamics import AccumulatedNoise
from theodolite.verbs.watching.training_hooks.harmless_hooks import harmless


class LastStep:
    """The weights before the optimizer's last step, copied only while a look is near; `release` gives the memory back.

    ``pulled`` names the parameters that had a gradient at such a step, ``pulls`` has the largest entries of those of the last
    one: afterwards it may be cleared, or be that of another loss.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.near = model, True
        self.before: dict[str, Tensor] = {}
        self.pulled: set[str] = set()
        self.pulls: dict[str, Tensor] = {}
        self._handles = [
            optimizer.register_step_pre_hook(self._steps),
            optimizer.register_step_post_hook(self._stepped),
        ]

    def release(self) -> None:
        """Forget the copy, also for a look that still holds it."""
        self.before.clear()

    def remove(self) -> None:
        """Watch no longer."""
        for handle in self._handles:
            handle.remove()
        self.release()

    @harmless
    def _stepped(self, *_: Any) -> None:
        if self.near:  # only now: a closure may have made the gradient within the step
            found = {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}
            self.pulled.update(found)
            self.pulls = {name: _largest(gradient) for name, gradient in found.items() if gradient.numel()}

    @harmless
    @torch.no_grad()
    def _steps(self, *_: Any) -> None:
        if not self.near:
            return
        own = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        if self.before.keys() == own.keys():
            for name, parameter in own.items():
                self.before[name].copy_(parameter)
        else:
            self.before = {name: p.detach().clone() for name, p in own.items()}


def _largest(gradient: Tensor) -> Tensor:
    values = gradient.coalesce().values() if gradient.is_sparse else gradient.detach()
    return values.abs().max()


class TrainingPrecision:
    """The autocast that training runs the model under, seen in its first forward pass in training mode."""

    def __init__(self, model: nn.Module, told: torch.dtype | None) -> None:
        self.dtype = told
        self._handle = None if told is not None else model.register_forward_pre_hook(self._runs)

    def remove(self) -> None:
        """Watch no longer."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _runs(self, module: nn.Module, _: Any) -> None:
        if torch.compiler.is_compiling():  # traced as nothing: a hook that does more would break the graph of training
            return
        if module.training and torch.is_grad_enabled():
            self.dtype = autocast_now(module)
            self.remove()


def in_precision(model: nn.Module, dtype: torch.dtype | None) -> torch.autocast:
    """An autocast for a look: that of training, or none."""
    kind = _device(model).type
    if dtype is None:
        return torch.autocast(kind, enabled=False)
    return torch.autocast(kind, dtype=dtype, cache_enabled=False)


def autocast_now(model: nn.Module) -> torch.dtype | None:
    """The precision of the autocast around this call on the model's device; None where there is none."""
    kind = _device(model).type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def is_silent() -> bool:
    """Whether this is one of several processes, and not the first: one watches and writes."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank() != 0
    return os.environ.get("RANK", "0") != "0"  # as torchrun tells each, also before and after they are a group


@dataclass(frozen=True)
class Training:
    """What a look knows of the training around it: the optimizer, the weights before its last step, the precision, and noise."""

    optimizer: torch.optim.Optimizer | None = None
    before: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    precision: torch.dtype | None = None
    noise: Callable[[], AccumulatedNoise | None] | None = None
    steps: int = 0


def bytes_of(model: nn.Module, optimizer: torch.optim.Optimizer | None) -> int:
    """What training keeps on its device for this model: weights, gradients and the optimizer's state."""
    own = sum(p.numel() * p.element_size() for p in model.parameters())
    held = 0
    if optimizer is not None:
        for state in optimizer.state.values():
            held += sum(v.numel() * v.element_size() for v in state.values() if isinstance(v, Tensor))
    return 2 * own + held


SMALL = 1 << 28
"""Bytes that are never too many."""


def most_bytes(model: nn.Module) -> int:
    """The most that was allocated so far on the model's GPU; 0 elsewhere."""
    device = _device(model)
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0


def room_beside(model: nn.Module, most: int, needed: int) -> float:
    """Bytes that stay free within twice the ``most`` that training took on its GPU, once ``needed`` more are taken.

    Less than none is refused; on a processor there is no end of it.
    """
    device = _device(model)
    if device.type != "cuda":
        return math.inf
    left = 2 * most - torch.cuda.memory_allocated(device) - needed
    if left < 0 and needed > SMALL:
        raise InputError(
            f"expected {needed / 2**30:.1f} GiB within twice the memory of training ({most / 2**30:.1f}), got less; this "
            "measurement is shortened"
        )
    return float(left)


@contextlib.contextmanager
def quiet_backends() -> Iterator[None]:
    """Nothing is chosen anew for the shapes of a look: cuDNN's benchmark would count them among those of training."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _device(model: nn.Module) -> torch.device:
    return next((p.device for p in model.parameters()), torch.device("cpu"))
