"""What a CPU refuses with an error ends the process on a GPU: a label beyond the classes, a probability beyond 1.

Findings rest on what a loss says to answers and targets that are made up, and a loss that refuses them is an answer too. On a
GPU nothing is refused: an assertion in the kernel makes every later call fail. So what losses of torch would refuse there is
looked at first, and raised as the CPU does.
"""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

NAMES = ("input", "target", "weight", "size_average", "ignore_index")


class RefusedAsOnCpu(TorchFunctionMode):
    """Losses of torch raise on these kinds of devices what they raise on a CPU."""

    def __init__(self, devices: Collection[str] = ("cuda",)) -> None:
        super().__init__()
        self.devices = devices

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if func in _CHECKS:
            given = {**dict(zip(NAMES, args, strict=False)), **keywords}
            own = given.get("input")
            if isinstance(own, Tensor) and own.device.type in self.devices and not _is_transformed(own):
                _CHECKS[func](given)
        return func(*args, **keywords)


def _is_transformed(value: Tensor) -> bool:
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(value))


def _check_labels(given: Mapping[str, Any]) -> None:
    scores, labels = given["input"], given.get("target")
    if not isinstance(labels, Tensor) or labels.is_floating_point():
        return
    classes = scores.shape[1] if scores.ndim > 1 else len(scores)
    ignored = given.get("ignore_index", -100)
    if bool(((labels != ignored) & ((labels < 0) | (labels >= classes))).any()):
        raise IndexError(f"expected labels from 0 to {classes - 1}, got {int(labels.min())} to {int(labels.max())}")


def _check_shares(given: Mapping[str, Any]) -> None:
    for value in (given["input"], given.get("target")):
        if isinstance(value, Tensor) and not bool(((value >= 0) & (value <= 1)).all()):
            raise RuntimeError("expected numbers between 0 and 1, got others")


_CHECKS = {F.cross_entropy: _check_labels, F.nll_loss: _check_labels, F.binary_cross_entropy: _check_shares}
