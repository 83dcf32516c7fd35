"""Randomness that depends on a seed and a case alone, in torch's and in numpy's form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


def case_seed(seed: int, case: Mapping[str, Any]) -> int:
    """A number that depends on these two alone, so that neither order nor the number of workers changes a result."""
    text = json.dumps([seed, sorted((key, repr(value)) for key, value in case.items())])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def case_generator(seed: int, case: Mapping[str, Any]) -> torch.Generator:
    """Torch's generator of `case_seed`."""
    import torch

    return torch.Generator().manual_seed(case_seed(seed, case))


def case_random(seed: int, case: Mapping[str, Any]) -> np.random.Generator:
    """Numpy's generator of `case_seed`: the one that `numpy_random` makes of torch's, without loading torch.

    >>> case = {"matrix": "a"}
    >>> case_random(0, case).random() == numpy_random(case_generator(0, case)).random()
    True
    """
    twister = np.random.RandomState(case_seed(seed, case) & 0xFFFFFFFF)  # torch's engine takes 32 bits of a seed
    high, low = (int(word) for word in twister.randint(0, 1 << 32, size=2, dtype=np.uint32))
    return np.random.default_rng((high << 32 | low) % 2**62)


def numpy_random(generator: torch.Generator | np.random.Generator) -> np.random.Generator:
    """Numpy's generator itself, or one seeded by the next number of torch's."""
    if isinstance(generator, np.random.Generator):
        return generator
    import torch

    return np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
