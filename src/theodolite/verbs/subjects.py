"""A subject from what people pass: a module, a Subject, a state dict, or the path of a checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theodolite.core.checks import InputTypeError, check_device, check_lr
from theodolite.core.lazy_torch import is_module
from theodolite.core.subject import Subject


def subject_of(target: Any, **facts: Any) -> Subject:
    """The subject; ``facts`` are its other fields (data, loss, optimizer, ...)."""
    if isinstance(target, Subject):
        if facts:
            raise InputTypeError(
                f"expected {', '.join(facts)} inside the Subject, got them separately; pass them to Subject"
            )
        return target
    if isinstance(target, str | Path):
        from theodolite.io.loading import target as loaded

        return loaded(str(target), **facts)
    if isinstance(target, Mapping):
        from theodolite.io.weights import state_of, weights_of

        return Subject(weights=weights_of(state_of(target)), **{"name": "state dict", **facts})
    return Subject(target, **facts)


def subject_to_judge(target: Any, **facts: Any) -> Subject:
    """The same for a diagnosis, which finds faults itself: nothing is checked beforehand, and facts may come beside a Subject."""
    given = {name: value for name, value in facts.items() if value is not None}
    if isinstance(target, str | Path):
        beside: dict[str, Any] = {
            name: given.pop(name) for name in ("optimizer", "validation", "run", "origin") if name in given
        }
        target = subject_of(target, **given)
        given = beside
    if isinstance(target, Subject):
        # nothing of a checkpoint, nor of its base, is read here: they may be larger than memory
        if target.model is None:
            return target
        own = {name: getattr(target, name) for name in _FIELDS if getattr(target, name) is not None}
        given = {**own, **given}
        target = target.model
    if isinstance(target, Mapping):
        return subject_of(target)
    if not is_module(target) and not hasattr(target, "_orig_mod"):
        raise InputTypeError(
            f"expected an nn.Module, a Subject, a state dict or a path, got {type(target).__name__}; pass the model"
        )
    lr = given.get("lr")
    check_lr(lr)
    if lr is not None and "optimizer" not in given:
        given["optimizer"] = plain_descent(target, lr)
    check_device(given.pop("device", "cpu"))
    subject = Subject(target, **given, checked=False)
    subject.check_runs()
    return subject


_FIELDS = ("data", "loss", "lr", "momentum", "optimizer", "validation", "origin", "run", "activation", "name")


def plain_descent(model: Any, lr: float) -> Any:
    """Plain gradient descent, where only a step size was told."""
    import torch

    from theodolite.core.optimizer_steps import made_optimizer

    own = [p for p in model.parameters() if p.requires_grad]
    return made_optimizer(torch.optim.SGD, own, lr=lr) if own else None
