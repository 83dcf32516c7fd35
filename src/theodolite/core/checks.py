"""What is checked before any number is trusted. Each check is silent, or one line: expected, got, do this.

The first part is for arguments. A function calls a check in its first lines, by the argument's own name::

    positive(lr=lr)
    at_least(1, samples=samples, batch_size=batch_size)

None passes, because it stands for an argument that was left out. The second part is for a user's model and data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from theodolite.core.lazy_torch import is_tensor, kind_of, torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from theodolite.io.batches import Batch

BLOCK = 1 << 18
"""Entries looked at together, so that what is asked of each takes little memory."""
_PLAIN = frozenset([float, int])


class InputError(ValueError):
    """What a user passed cannot be worked with: one line that says what was expected, what came, and what to do.

    The command line prints that line alone. Every other error is a defect of this package, and keeps its traceback.
    """


class InputTypeError(InputError, TypeError):
    """What a user passed is of a kind that cannot be worked with."""


class MissingPackageError(InputError, ImportError):
    """An optional package that a user asked for is not installed."""


def positive(**numbers: Any) -> None:
    """Each number is finite and above 0."""
    for name, value in numbers.items():
        if not (type(value) in _PLAIN and 0 < value < math.inf):
            _within(name, value, lambda v: (v > 0) & (v < math.inf), "a finite number above 0")


def not_negative(**numbers: Any) -> None:
    """Each number is finite and at least 0."""
    for name, value in numbers.items():
        if not (type(value) in _PLAIN and 0 <= value < math.inf):
            _within(name, value, lambda v: (v >= 0) & (v < math.inf), "a finite number of at least 0")


def finite(**numbers: Any) -> None:
    """Each number is neither NaN nor infinite."""
    for name, value in numbers.items():
        if not (type(value) in _PLAIN and -math.inf < value < math.inf):
            _within(name, value, lambda v: (v > -math.inf) & (v < math.inf), "a finite number")


def within(low: float, high: float, **numbers: Any) -> None:
    """Each number is from ``low`` to ``high``, both included."""
    for name, value in numbers.items():
        if not (type(value) in _PLAIN and low <= value <= high):
            _within(name, value, lambda v: (v >= low) & (v <= high), f"a number from {low:g} to {high:g}")


def at_least(low: int, **counts: Any) -> None:
    """Each is a whole number of at least ``low``."""
    for name, value in counts.items():
        if not (type(value) is int and value >= low):
            _whole(value, low, f"{name} to be a whole number")


def each_at_least(low: int, **counts: Any) -> None:
    """Each is several whole numbers, all of at least ``low``."""
    for name, values in counts.items():
        for value in values:
            if not (type(value) is int and value >= low):
                _whole(value, low, f"{name} to be whole numbers")


def one_of(choices: Iterable[Any], **named: Any) -> None:
    """Each is one of the choices, as None is only where it is one.

    >>> one_of(("mean", "sum"), reduction="mean")
    """
    known = tuple(choices)
    for name, value in named.items():
        if value not in known:
            article, words = "an" if name[0] in "aeiou" else "a", ", ".join(map(str, known))
            raise InputError(f"expected {article} {name} among {words}, got {value!r}; choose one of them")


def has_values(**arrays: Any) -> None:
    """Each array or tensor has at least one entry."""
    for name, value in arrays.items():
        if value is not None and 0 in value.shape:
            raise InputError(f"expected values for {name}, got shape {tuple(value.shape)}; pass at least one")


def symmetric(**matrices: Any) -> None:
    """Each matrix has entries, is square, and is its own transpose up to rounding: solvers read one half of it alone."""
    for name, matrix in matrices.items():
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise InputError(
                f"expected a square matrix for {name}, got shape {tuple(matrix.shape)}; pass points by the same points"
            )
        apart, size = float(abs(matrix - matrix.T).max()), float(abs(matrix).max())
        if apart > 1e-4 * size:
            raise InputError(
                f"expected a symmetric {name}, got entries {apart:.3g} from their mirror image; average the two"
            )


def finite_values(**arrays: Any) -> None:
    """No entry of an array or a tensor is NaN or infinite. It reads every entry: only where a wrong number would come of it."""
    for name, value in arrays.items():
        if value is not None:
            _within(name, value, lambda v: abs(v) < math.inf, "finite values")


def real_values(**arrays: Any) -> None:
    """Each array or tensor is of real numbers: what is computed in real ones would lose the imaginary part without a word."""
    for name, value in arrays.items():
        kind = kind_of(getattr(value, "dtype", ""))
        if kind.startswith("complex"):
            raise InputTypeError(
                f"expected real numbers for {name}, got {kind}; pass real and imaginary part as columns"
            )


def as_tensor(value: Any, *, floats: bool = True) -> Tensor:
    """The numbers as a tensor: a NumPy array or a list becomes one, and whole numbers become float64 unless told otherwise."""
    found = value if is_tensor(value) else torch.as_tensor(value)
    return found if not floats or found.is_floating_point() or found.is_complex() else found.to(torch.float64)


def _whole(value: Any, low: int, words: str) -> None:
    whole = hasattr(value, "__index__") or (isinstance(value, float) and value.is_integer())
    if value is None or (whole and not isinstance(value, bool) and value >= low):
        return
    kind = InputError if isinstance(value, int | float) and not isinstance(value, bool) else InputTypeError
    raise kind(f"expected {words} of at least {low}, got {value!r}; pass {low} or more")


def _within(name: str, value: Any, sound: Callable[[Any], Any], words: str) -> None:
    """Refuse what is not sound; of several numbers all must be. A tensor that is only traced has no value, and passes."""
    if value is None:
        return
    try:
        found = sound(value)
        good = bool(found.all()) if hasattr(found, "all") else bool(found)
    except TypeError as error:
        raise InputTypeError(f"expected {name} to be {words}, got {value!r}; pass such a number") from error
    except RuntimeError:  # inside torch.func.vmap no value may decide
        return
    if not good:
        got = f"{value}" if math.prod(getattr(value, "shape", ())) == 1 else "others among them"
        raise InputError(f"expected {name} to be {words}, got {got}; pass such a number")


def check_made(name: str, tensor: Tensor) -> None:
    """The weights have values."""
    if isinstance(tensor, torch.nn.parameter.UninitializedParameter):
        raise InputError(
            f"expected weights, got {name} without a shape (a lazy module); run one batch through it first"
        )
    if tensor.is_meta:
        raise InputError(f"expected weights, got {name} on the meta device, without values; load the checkpoint first")


class NotFiniteError(InputError):
    """Weights, answers or a loss that are NaN or infinite."""


def check_finite(name: str, tensor: Tensor | NDArray[Any]) -> None:
    """No weight is NaN or infinite."""
    sound = (
        is_finite_tensor(tensor)
        if is_tensor(tensor)
        else not kind_of(tensor.dtype).startswith(("float", "complex")) or _all_finite(tensor)
    )
    if not sound:
        import numpy as np

        count = _count_bad(tensor) if is_tensor(tensor) else int((~np.isfinite(tensor)).sum())
        raise NotFiniteError(
            f"expected finite weights, got {count} of {math.prod(tensor.shape)} values of {name} NaN or infinite; "
            "use an earlier checkpoint"
        )


def _all_finite(array: NDArray[Any]) -> bool:
    import numpy as np

    flat = array.reshape(-1)
    return all(bool(np.isfinite(flat[at : at + BLOCK]).all()) for at in range(0, flat.size, BLOCK))


def ran_on(output: Callable[[Batch], Any], batch: Batch) -> list[Tensor]:
    """What the model answers to the first batch; one line where it does not run."""
    try:
        found = list(tensors_in(output(batch)))
    except Exception as error:
        raise InputError(_refusal(error, batch)) from error
    if not found:
        raise InputError(
            "expected a model that returns a tensor, got none in its output; wrap it so that it returns one"
        )
    return found


def _refusal(error: Exception, batch: Batch) -> str:
    """What is wrong with the inputs in our words, where torch's tell; else in torch's."""
    said, shape = _one_line(error), f"inputs of shape {batch.shapes()}"
    whole = [tensor for tensor in batch.tensors() if not tensor.is_floating_point()]
    if whole and "dtype" in said:
        return f"expected floating-point inputs, got {str(whole[0].dtype).removeprefix('torch.')}; pass inputs.float()"
    if linear := re.search(r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", said):
        needed = linear[3]
        return (
            f"expected {needed} numbers per sample at a linear layer, got {linear[2]} from {shape}; pass {needed} or change "
            "its in_features"
        )
    if channels := re.search(r"to have (\d+) channels, but got (\d+) channels", said):
        return (
            f"expected {channels[1]} channels from {shape}, got {channels[2]}; pass (samples, channels, height, width)"
        )
    return (
        f"expected a model that runs on the first batch, {shape}, got {type(error).__name__}: {said}; check the shapes, or "
        "wrap the model so that it takes them"
    )


def check_forward(output: Callable[[Batch], Any], batch: Batch) -> str:
    """The model runs on the first batch and answers finite numbers; words where they are others the second time."""
    with torch.no_grad():
        first = ran_on(output, batch)
        second = list(tensors_in(output(batch)))
    if not all(is_finite_tensor(tensor) for tensor in first):
        raise NotFiniteError("expected finite outputs on the first batch, got NaN or infinity; check the data's scale")
    changes = [float((a - b).abs().max()) for a, b in zip(first, second, strict=True) if not torch.equal(a, b)]
    if not changes:
        return ""
    size = max(float(tensor.abs().max()) for tensor in first)
    return (
        f"random in eval mode: two passes of one batch differ by up to {max(changes):.2g} with outputs of {size:.2g}, which "
        "adds noise to every reading (dropout by nn.Dropout would be off)"
    )


def check_inputs(batch: Batch, number: int) -> None:
    """No input or target of a batch, the first being number 1, is NaN or infinite."""
    named = {**{f"input {place + 1}": value for place, value in enumerate(batch.inputs)}, **batch.keywords}
    for name, value in {**named, "the target": batch.target}.items():
        tensor = value.data if isinstance(value, torch.nn.utils.rnn.PackedSequence) else value
        if is_tensor(tensor) and not is_finite_tensor(tensor):
            raise NotFiniteError(
                f"expected finite data, got {_count_bad(tensor)} of {tensor.numel()} values of {name} NaN or infinite in batch "
                f"number {number}; fix that batch or leave it out"
            )


def check_loss_function(loss: Any) -> None:
    """A loss is a function of output and target: not its name, and not the class of one."""
    if loss is None or (callable(loss) and not isinstance(loss, type)):
        return
    if isinstance(loss, str):
        functions = torch.nn.functional
        plain = loss.lower().replace("-", "_").replace(" ", "_")
        named = next((name for name in (plain, f"{plain}_loss") if callable(getattr(functions, name, None))), "")
        todo = (
            f"pass torch.nn.functional.{named}"
            if named
            else "pass a function such as torch.nn.functional.cross_entropy"
        )
        raise InputTypeError(f"expected a function loss(output, target), got the string {loss!r}; {todo}")
    if isinstance(loss, type):
        raise InputTypeError(
            f"expected a function loss(output, target), got the class {loss.__name__}; pass {loss.__name__}() with parentheses"
        )
    raise InputTypeError(
        f"expected a function loss(output, target), got {type(loss).__name__}; pass one such as "
        "torch.nn.functional.cross_entropy"
    )


def check_optimizer(optimizer: Any) -> None:
    """An optimizer is one that was made from parameters: not its name, and not its class."""
    if optimizer is None or (hasattr(optimizer, "param_groups") and not isinstance(optimizer, type)):
        return
    named = repr(optimizer) if isinstance(optimizer, str) else type(optimizer).__name__
    got = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else named
    name = optimizer.__name__ if isinstance(optimizer, type) else "Adam"
    raise InputTypeError(f"expected an optimizer, got {got}; pass torch.optim.{name}(model.parameters(), lr=...)")


def check_lr(lr: Any) -> None:
    """A learning rate is a number above 0, or left out."""
    if lr is None:
        return
    if isinstance(lr, str) or not hasattr(lr, "__float__"):
        raise InputTypeError(f"expected lr to be a number, got {lr!r}; pass it without quotes, such as lr=0.1")
    if not float(lr) > 0:
        raise InputError(f"expected a positive learning rate, got {lr}; pass the one used in training")


def check_device(device: str) -> None:
    """A device is one of this machine."""
    if device == "cpu":
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"expected a device of this machine, got {device!r}: {_one_line(error)}; leave out the device"
        ) from error


def check_labels(answer: Any, target: Any, loss: Callable[[Any, Any], Any], column: Any = None) -> None:
    """Class labels lie within the outputs; ``column`` is all of them where they lie in memory. A loss may take others."""
    if not _classes(answer, target) or target.is_floating_point() or target.is_complex():
        return
    every = target if column is None else column
    counted = every[every != getattr(loss, "ignore_index", -100)]
    classes = answer.shape[1]
    low, high = (int(counted.min()), int(counted.max())) if counted.numel() else (0, 0)
    if low >= 0 and high < classes:
        return
    sample = target.clone().flatten()
    sample[0] = high if high >= classes else low
    if _refused(loss, answer, sample.reshape(target.shape)) and not _refused(loss, answer, torch.zeros_like(target)):
        fits = high - low < classes
        todo = (
            f"pass labels - {low}"
            if fits and low > 0
            else f"pass labels + {-low}"
            if fits
            else f"give the last layer {high + 1} outputs"
        )
        raise InputError(
            f"expected labels from 0 to {classes - 1} for {classes} outputs, got labels from {low} to {high}; {todo}"
        )


def explain_refusal(answer: Any, target: Any, loss: Callable[[Any, Any], Any]) -> None:
    """Say what is wrong where a loss refuses outputs and targets and would take others in their place."""
    if isinstance(answer, tuple | list | Mapping):
        parts = answer.items() if isinstance(answer, Mapping) else enumerate(answer)
        taken = [
            key for key, part in parts if is_tensor(part) and is_tensor(target) and not _refused(loss, part, target)
        ]
        if taken:
            raise InputError(
                f"expected a loss that takes the model's output, a {type(answer).__name__} of {len(answer)}, got one for its "
                f"part {taken[0]!r}; pass loss=lambda output, target: loss(output[{taken[0]!r}], target)"
            )
    if not is_tensor(answer):
        return
    if not is_tensor(target) or not _refused(loss, answer, target):
        return
    if not _refused(loss, target, answer):
        raise InputError("expected a function loss(output, target), got loss(target, output); swap its arguments")
    kind, shape = kind_of(target.dtype), tuple(target.shape)
    if (
        target.is_floating_point()
        and bool((target == target.round()).all())
        and not _refused(loss, answer, target.long())
    ):
        raise InputError(f"expected whole-number class labels, got {kind}; pass labels.long()")
    if target.shape[-1:] == (1,) and not _refused(loss, answer, target.squeeze(-1)):
        raise InputError(f"expected targets of shape {shape[:-1]}, got {shape}; pass targets.squeeze(-1)")
    if not target.is_floating_point():
        if not _refused(loss, answer, target.long()):
            raise InputError(f"expected labels of type int64, got {kind}; pass labels.long()")
        if not _refused(loss, answer, target.to(answer.dtype)):
            raise InputError(f"expected targets of type {kind_of(answer.dtype)}, got {kind}; pass targets.float()")
        if answer.shape[1:2] > (1,) and not _refused(torch.nn.functional.cross_entropy, answer, target.long()):
            raise InputError(
                f"expected a loss for {answer.shape[1]} classes, got one that refuses labels of shape {shape}; pass "
                "torch.nn.functional.cross_entropy"
            )
    column = target[..., None].to(answer.dtype)
    if column.shape == answer.shape and not _refused(loss, answer, column):
        to = "targets" if target.is_floating_point() else "targets.float()"
        raise InputError(f"expected targets of shape {tuple(column.shape)}, got {shape}; pass {to}.unsqueeze(-1)")
    if target.ndim and answer.ndim and len(target) != len(answer):
        raise InputError(
            f"expected one target a sample, got {len(target)} targets for {len(answer)} outputs; check the model's output"
        )


def _classes(answer: Any, target: Any) -> bool:
    """Whether shapes are those of class scores and class labels."""
    if not is_tensor(answer) or not is_tensor(target) or answer.ndim < 2 or not target.numel():
        return False
    return answer.is_floating_point() and tuple(target.shape) == (answer.shape[0], *answer.shape[2:])


def _refused(loss: Callable[[Any, Any], Any], answer: Any, target: Any) -> bool:
    """Whether a loss raises, asked on the CPU: there a label out of range is an error, on a GPU the end of the process."""
    try:
        with torch.no_grad():
            loss(answer.detach().cpu(), target.detach().cpu())
    except Exception:
        return True
    return False


def check_loss(loss_on: Callable[[Batch], Any], batch: Batch) -> None:
    """The loss is one finite number."""
    with torch.no_grad():
        try:
            value = loss_on(batch)
        except Exception as error:
            shape = tuple(batch.target.shape) if is_tensor(batch.target) else type(batch.target).__name__
            raise InputError(
                f"expected a loss(output, target) that runs on the first batch, target {shape}, got "
                f"{type(error).__name__}: {_one_line(error)}; check the target's shape and type"
            ) from error
    if not is_tensor(value) or value.numel() != 1 or not is_finite_tensor(value):
        got = f"{tuple(value.shape)} tensor {value.flatten()[:3].tolist()}" if is_tensor(value) else repr(value)
        lost = is_tensor(value) and value.numel() == 1
        raise (NotFiniteError if lost else InputError)(
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


def is_finite_tensor(tensor: Tensor) -> bool:
    """No entry is NaN or infinite."""
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
