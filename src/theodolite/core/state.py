"""The user's model, the global random state and how products are made, left bit for bit as they were."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from theodolite.core.checks import InputError
from theodolite.core.lazy_torch import torch

if TYPE_CHECKING:
    from torch import nn


@contextmanager
def untouched(model: nn.Module | None, *, training: bool = False) -> Iterator[None]:
    """Run the body with the model in eval (or train) mode; afterwards everything is as before.

    Attention goes the plain way, not by torch's fused one of eval mode, which no hook sees into and which answers nested
    tensors. Restored: the mode of every module, buffers, ``requires_grad``, hooks, gradients (set aside meanwhile), and the
    random state of Python, numpy and torch on every device. Parameters are not copied (they may fill the memory) but watched:
    a body that changes one is an error, never a silent loss.
    """
    if "torch" not in sys.modules:  # then nothing of it can be changed
        with _plain_random_state():
            yield
        return
    with _random_state():
        if model is None:
            yield
            return
        modes = [(module, module.training) for module in model.modules()]
        buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
        parameters = [(p, p._version, p.grad, p.requires_grad) for p in model.parameters()]
        hooks = [[set(getattr(module, name)) for name in _HOOKS] for module, _ in modes]
        for parameter, _, gradient, _ in parameters:
            if gradient is not None:
                parameter.grad = None  # the body cannot add to what it does not see, and nothing has to be copied
        model.train(training)
        fused = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fused)
            for module, mode in modes:
                if module.training is not mode:
                    module.training = mode
            with torch.no_grad():
                for buffer, copy in buffers:
                    if not torch.equal(buffer, copy):
                        buffer.copy_(copy)
            for parameter, _, gradient, wanted in parameters:
                if parameter.grad is not gradient:
                    parameter.grad = gradient
                if parameter.requires_grad is not wanted:
                    parameter.requires_grad_(wanted)
            for (module, _), registered in zip(modes, hooks, strict=True):
                for name, before in zip(_HOOKS, registered, strict=True):
                    current = getattr(module, name)
                    for key in set(current) - before:
                        del current[key]
        changed = sum(p._version != version for p, version, _, _ in parameters)
        if changed:
            raise InputError(
                f"expected a model whose forward pass leaves its parameters alone, got {changed} parameters changed "
                "in place; survey a copy of the model, or move the update out of forward"
            )


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@contextmanager
def _random_state() -> Iterator[None]:
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices), _plain_random_state():
        yield


@contextmanager
def _plain_random_state() -> Iterator[None]:
    python, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002  the state that user code may rely on
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numbers)  # noqa: NPY002


@contextmanager
def exact_products() -> Iterator[None]:
    """Within, products of float32 matrices are made in float32: no TF32, no bfloat16, whose error is a thousand times larger."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
