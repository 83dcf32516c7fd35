"""What is checked before any number is trusted. Each check is silent, or one line: expected, got, do this."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.lazy_torch import is_tensor, kind_of, torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from theodolite.io.batches import Batch

BLOCK = 1 << 18
"""Entries looked at together, so that what is asked of each takes little memory."""


def check_made(name: str, tensor: Tensor) -> None:
    """The weights have values."""
    if isinstance(tensor, torch.nn.parameter.UninitializedParameter):
        raise ValueError(f"expected weights, got {name} not yet made (a lazy module); run one batch through it first")
    if tensor.is_meta:
        raise ValueError(f"expected weights, got {name} on the meta device, without values; load the checkpoint first")


class NotFiniteError(ValueError):
    """Weights, answers or a loss that are NaN or infinite."""


def check_finite(name: str, tensor: Tensor | NDArray[Any]) -> None:
    """No weight is NaN or infinite."""
    finite = (
        _finite(tensor)
        if is_tensor(tensor)
        else not kind_of(tensor.dtype).startswith(("float", "complex")) or _all_finite(tensor)
    )
    if not finite:
        count = _count_bad(tensor) if is_tensor(tensor) else int((~np.isfinite(tensor)).sum())
        raise NotFiniteError(
            f"expected finite weights, got {count} of {math.prod(tensor.shape)} values of {name} NaN or infinite; "
            "take an earlier checkpoint"
        )


def _all_finite(array: NDArray[Any]) -> bool:
    flat = array.reshape(-1)
    return all(bool(np.isfinite(flat[at : at + BLOCK]).all()) for at in range(0, flat.size, BLOCK))


def check_forward(output: Callable[[Batch], Any], batch: Batch) -> str:
    """The model runs on the first batch and answers finite numbers; words where they are others the second time."""
    with torch.no_grad():
        try:
            first = list(tensors_in(output(batch)))
        except Exception as error:
            raise ValueError(
                f"expected a model that runs on the first batch, inputs of shape {batch.shapes()}, got "
                f"{type(error).__name__}: {_one_line(error)}; check the shapes, or wrap the model so that it takes them"
            ) from error
        second = list(tensors_in(output(batch)))
    if not first:
        raise ValueError("expected a model that returns a tensor, got none in its answer; wrap it to return one")
    if not all(_finite(tensor) for tensor in first):
        raise NotFiniteError("expected finite outputs on the first batch, got NaN or infinity; check the data's scale")
    changes = [float((a - b).abs().max()) for a, b in zip(first, second, strict=True) if not torch.equal(a, b)]
    if not changes:
        return ""
    size = max(float(tensor.abs().max()) for tensor in first)
    return (
        f"random in eval mode: two passes of one batch differ by up to {max(changes):.2g} beside answers of {size:.2g}, which "
        "every reading carries as noise (dropout through nn.Dropout would be off)"
    )


def check_inputs(batch: Batch, number: int) -> None:
    """No input or target of a batch, the first being number 1, is NaN or infinite."""
    named = {**{f"input {place + 1}": value for place, value in enumerate(batch.inputs)}, **batch.keywords}
    for name, value in {**named, "the target": batch.target}.items():
        tensor = value.data if isinstance(value, torch.nn.utils.rnn.PackedSequence) else value
        if is_tensor(tensor) and not _finite(tensor):
            raise NotFiniteError(
                f"expected finite data, got {_count_bad(tensor)} of {tensor.numel()} values of {name} NaN or infinite in batch "
                f"number {number}; mend that batch or leave it out"
            )


def check_loss(loss_on: Callable[[Batch], Any], batch: Batch) -> None:
    """The loss is one finite number."""
    with torch.no_grad():
        try:
            value = loss_on(batch)
        except Exception as error:
            shape = tuple(batch.target.shape) if is_tensor(batch.target) else type(batch.target).__name__
            raise ValueError(
                f"expected a loss(output, target) that runs on the first batch, target {shape}, got "
                f"{type(error).__name__}: {_one_line(error)}; check the target's shape and type"
            ) from error
    if not is_tensor(value) or value.numel() != 1 or not _finite(value):
        got = f"{tuple(value.shape)} tensor {value.flatten()[:3].tolist()}" if is_tensor(value) else repr(value)
        lost = is_tensor(value) and value.numel() == 1
        raise (NotFiniteError if lost else ValueError)(
            f"expected a loss that is one finite number, got {got}; average it over the batch (reduction='mean')"
        )


def tensors_in(answer: Any) -> Iterator[Tensor]:
    """Every tensor in a model's answer, however it is nested."""
    if is_tensor(answer):
        yield answer
    elif isinstance(answer, Mapping):
        for member in answer.values():
            yield from tensors_in(member)
    elif isinstance(answer, tuple | list):
        for member in answer:
            yield from tensors_in(member)


def _finite(tensor: Tensor) -> bool:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_quantized:
        return True
    if tensor.dtype.itemsize == 1:  # float8: no isfinite kernel
        tensor = tensor.float()
    return bool(torch.isfinite(tensor).all())


def _count_bad(tensor: Tensor) -> int:
    wide = tensor.float() if tensor.dtype.itemsize == 1 else tensor
    return int((~torch.isfinite(wide)).sum())


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no message"


def real_values(**arrays: Any) -> None:
    """Each array or tensor is of real numbers: what is computed in real ones would lose the imaginary part without a word."""
    for name, value in arrays.items():
        kind = kind_of(getattr(value, "dtype", ""))
        if kind.startswith("complex"):
            raise TypeError(f"expected real numbers for {name}, got {kind}; pass real and imaginary part as columns")
