"""Blocks of numbers that are computed in place, in memory that is used again."""

from functools import lru_cache

import torch
from torch import Tensor

SPARE = 16
"""Blocks of one shape that are kept at most."""


class Scratch:
    """Blocks of memory that are used again: a block of work allocates nothing."""

    def __init__(self) -> None:
        self._free: dict[tuple[torch.Size, torch.dtype], list[Tensor]] = {}

    def like(self, block: Tensor, shape: torch.Size | None = None) -> Tensor:
        """An uninitialized block of the same shape, or of another."""
        shape = block.shape if shape is None else shape
        spare = self._free.get((shape, block.dtype))
        return spare.pop() if spare else torch.empty(shape, dtype=block.dtype, device=block.device)

    def release(self, *blocks: Tensor | float | None) -> None:
        """Take back blocks that came from here, each of them once; those of a GPU are kept by its allocator."""
        for block in blocks:
            if isinstance(block, Tensor) and not block.is_cuda:
                spare = self._free.setdefault((block.shape, block.dtype), [])
                if len(spare) < SPARE:
                    spare.append(block)


def constant(value: float, like: Tensor) -> Tensor:
    """The number as a tensor, remembered."""
    return _constant(value, like.dtype, like.device)


@lru_cache(maxsize=1024)
def _constant(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(value, dtype=dtype, device=device)


def affine_(block: Tensor, scale: float, shift: float) -> Tensor:
    """``scale * block + shift`` in place, in one pass."""
    if not shift:
        return block if scale == 1.0 else block.mul_(scale)
    return torch.add(constant(shift, block), block, alpha=scale, out=block)
