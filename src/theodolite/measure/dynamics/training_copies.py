"""A training copied: the model, and its optimizer with its state, which steps the copy."""

import copy

import torch
from torch import nn


def copied_training(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model and its optimizer, copied together so that the copy steps the copy; hooks of the optimizer are left behind.

    So is a ``forward`` that was put in the place of the class's and holds the original: the copy would run that one.
    """
    held = [p for group in optimizer.param_groups for p in group["params"]]
    gradients = [(p, p.grad) for p in {id(p): p for p in (*model.parameters(), *held)}.values()]
    own = {
        name: value for name, value in optimizer.__dict__.items() if name not in _LEFT_BEHIND and "hooks" not in name
    }
    try:
        for parameter, _ in gradients:
            parameter.grad = None
        copied, members = copy.deepcopy((model, own))
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
    for module in copied.modules():
        patched = vars(module).get("forward")
        inner = getattr(patched, "__func__", None)
        bound_here = getattr(patched, "__self__", None) is module and getattr(inner, "__closure__", True) is None
        if patched is not None and not bound_here:
            del module.__dict__["forward"]
    stepper = object.__new__(type(optimizer))
    stepper.__setstate__(members)
    return copied, stepper


_LEFT_BEHIND = ("step",)
"""Schedulers wrap the bound method, and a copy of that would step the original."""
