"""A training copied: the model, and its optimizer with its state, which steps the copy."""

import copy

import torch
from torch import nn

from theodolite.core.model_wrappers import leave_borrowed_forwards


def copied_training(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model and its optimizer, copied together so that the copy steps the copy; hooks of the optimizer are left behind."""
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
    leave_borrowed_forwards(copied)
    stepper = object.__new__(type(optimizer))
    stepper.__setstate__(members)
    return copied, stepper


_LEFT_BEHIND = ("step",)
"""Schedulers wrap the bound method, and a copy of that would step the original."""
