"""A module as a pure function of its parameters and a batch."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.stateless import _reparametrize_module

from theodolite.core.checks import InputError, InputTypeError

Inputs = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]
"""What a model is called with, samples first: one tensor, several by position, or several by name."""

Parameters = dict[str, Tensor]


def called_with(
    model: nn.Module, values: Mapping[str, Tensor], args: tuple[Any, ...], keywords: Mapping[str, Any] | None = None
) -> Any:
    """The model's answer with other parameters and buffers, by their first names; shared tensors stay shared.

    ``torch.func.functional_call`` finds the other names of a shared tensor itself, and of a module that is used twice it puts the
    other values back in place of the user's own. So every place is named here, once a module, and it is told not to look.
    """
    return torch.func.functional_call(model, _everywhere(model, values), args, dict(keywords or {}), tie_weights=False)


@contextmanager
def held(model: nn.Module, values: Mapping[str, Tensor]) -> Iterator[None]:
    """The model with other parameters and buffers for the time of many calls: as `called_with`, which looks through it in each.

    >>> layer = nn.Linear(1, 1, bias=False)
    >>> with held(layer, {"weight": torch.tensor([[3.0]])}):
    ...     layer(torch.ones(1, 1)).item()
    3.0
    """
    with _reparametrize_module(model, _everywhere(model, values)):
        yield


def _everywhere(model: nn.Module, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """These tensors by every name that the model has for them."""
    first: dict[int, str] = {}
    every = dict(values)
    for path, module in model.named_modules():
        for own, tensor in (*module._parameters.items(), *module._buffers.items()):
            name = f"{path}.{own}" if path else own
            if tensor is not None and first.setdefault(id(tensor), name) in values:
                every[name] = values[first[id(tensor)]]
    return every


@dataclass(frozen=True)
class Stateless:
    """``stateless(parameters, x)`` is the model's first tensor (or its logits), one row a sample, in evaluation mode.

    ``parameters`` holds what the derivative is taken by, tied tensors once, half precision as float32; ``fixed`` the
    rest: buffers, and parameters that are frozen.
    """

    model: nn.Module
    parameters: Parameters
    fixed: Parameters = field(repr=False)

    def __call__(self, parameters: Mapping[str, Tensor], x: Inputs) -> Tensor:
        """The outputs, (samples, outputs)."""
        args, keywords = _arguments(x)
        answer = called_with(self.model, {**self.fixed, **parameters}, args, keywords)
        found = first_tensor(answer)
        if found.ndim == 0 or len(found) != count(x):
            raise InputError(
                f"expected a model that answers one row a sample, got {tuple(found.shape)} for {count(x)} samples; "
                "wrap it so that samples come first"
            )
        return found.reshape(len(found), -1)


def stateless(model: nn.Module, *, frozen: bool = False) -> Stateless:
    """The model as a function of its trainable parameters, or with ``frozen`` of all of them.

    >>> net = stateless(nn.Linear(2, 1, bias=False))
    >>> net({"weight": torch.ones(1, 2)}, torch.tensor([[1.0, 2.0]])).tolist()
    [[3.0]]
    """
    own, fixed = {}, {name: promoted(buffer) for name, buffer in model.named_buffers()}
    for name, parameter in model.named_parameters():
        if parameter.is_floating_point() and (frozen or parameter.requires_grad):
            own[name] = promoted(parameter.detach()).requires_grad_()
        else:
            fixed[name] = promoted(parameter.detach())
    if not own:
        raise InputError("expected a model with trainable parameters, got none; frozen=True counts frozen ones too")
    return Stateless(model, own, fixed)


def promoted(tensor: Tensor) -> Tensor:
    """Half precision as float32, anything else as it is."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def placed(x: Inputs, like: Tensor) -> Inputs:
    """The batch on the device of a tensor, floating members in its precision."""
    if isinstance(x, Tensor):
        return x.detach().to(like.device, like.dtype if x.is_floating_point() else x.dtype)
    if isinstance(x, Mapping):
        return {name: placed(member, like) for name, member in x.items()}  # type: ignore[misc]
    return tuple(placed(member, like) for member in x)  # type: ignore[misc]


def count(x: Inputs) -> int:
    """How many samples a batch holds."""
    if isinstance(x, Tensor):
        return len(x)
    return len(next(iter(x.values()))) if isinstance(x, Mapping) else len(x[0])


def rows(x: Inputs, part: slice) -> Inputs:
    """Some samples of a batch."""
    if isinstance(x, Tensor):
        return x[part]
    if isinstance(x, Mapping):
        return {name: member[part] for name, member in x.items()}
    return tuple(member[part] for member in x)


def as_batch_of_one(x: Inputs) -> Inputs:
    """One sample, as a batch."""
    if isinstance(x, Tensor):
        return x.unsqueeze(0)
    if isinstance(x, Mapping):
        return {name: member.unsqueeze(0) for name, member in x.items()}
    return tuple(member.unsqueeze(0) for member in x)


def first_tensor(answer: Any) -> Tensor:
    """Of what a model answers, the logits where they are named, else the first tensor."""
    named = answer.get("logits") if isinstance(answer, Mapping) else getattr(answer, "logits", None)
    if isinstance(named, Tensor):
        return named
    if isinstance(answer, Mapping):
        answer = tuple(answer.values())
    if isinstance(answer, tuple | list):
        answer = next((member for member in answer if isinstance(member, Tensor)), None)
    if not isinstance(answer, Tensor):
        raise InputTypeError(
            f"expected a model that answers a tensor, got {type(answer).__name__}; wrap it to return one"
        )
    return answer


@contextmanager
def plain_attention() -> Iterator[None]:
    """Attention by its formula: the fused passes have no second derivatives and do not vectorize.

    Torch's notes to itself (slow vectorization, deprecated parts within) are kept from the user.
    """
    with sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*performance drop.*")
        warnings.filterwarnings("ignore", message=".*torch.jit.script.*")
        yield


def normalizes_batches(model: nn.Module) -> bool:
    """Whether the model has batch normalization with running means, which training does not use."""
    return any(_has_running_means(module) for module in model.modules())


@contextmanager
def batch_statistics(model: nn.Module) -> Iterator[None]:
    """Batch normalization by the batch's own mean and variance, as in a training step; nothing of the model is changed.

    Dropout and the like stay as they are, so that the loss is a function of weights and batch alone.
    """
    held = [(module, dict(module._buffers)) for module in model.modules() if _has_running_means(module)]
    try:
        for module, _ in held:
            module._buffers.update(running_mean=None, running_var=None)
        yield
    finally:
        for module, buffers in held:
            module._buffers.update(buffers)


def _has_running_means(module: nn.Module) -> bool:
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None


def _arguments(x: Inputs) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    if isinstance(x, Mapping):
        return (), dict(x)
    return (x,) if isinstance(x, Tensor) else tuple(x), {}
