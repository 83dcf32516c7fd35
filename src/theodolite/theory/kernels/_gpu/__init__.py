"""Programs for a GPU, written in Triton; whatever they do is done by plain torch where they cannot be built."""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


@functools.cache
def has_triton() -> bool:
    """Whether programs can be written at all."""
    return importlib.util.find_spec("triton") is not None


def attempt(work: Callable[[], T], block: Tensor) -> T | None:
    """What a program makes of a block, on its device; None where there is no GPU, no Triton, or no way to build it."""
    if not block.is_cuda or not has_triton():
        return None
    try:
        with torch.cuda.device(block.device):
            return work()
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        # no compiler for Triton's launcher, a device it does not know: plain torch is slower only
        warnings.warn(
            f"the fused GPU program could not be built ({type(error).__name__}: {error}); using plain torch",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
