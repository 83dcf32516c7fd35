"""Torch, loaded when something of it is first asked for: what reads a checkpoint of plain arrays never asks.

Importing torch takes longer than most surveys of a file. Modules that may do without it write
``from theodolite.core.lazy_torch import torch`` and use it as ever.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch as torch
    from numpy.typing import NDArray
    from typing_extensions import TypeIs

    Array = NDArray[np.floating[Any]]
else:

    class _Torch:
        def __getattr__(self, name: str) -> Any:
            import torch

            return getattr(torch, name)

    torch = _Torch()


def is_tensor(value: Any) -> TypeIs[torch.Tensor]:
    """Whether it is a tensor; without torch loaded nothing is."""
    loaded = sys.modules.get("torch")
    return loaded is not None and isinstance(value, loaded.Tensor)


def is_module(value: Any) -> TypeIs[torch.nn.Module]:
    """Whether it is a module of torch; without torch loaded nothing is."""
    loaded = sys.modules.get("torch")
    return loaded is not None and isinstance(value, loaded.nn.Module)


def array_of(matrix: torch.Tensor | Array) -> Array:
    """The numbers of a tensor of this machine's memory as an array; types that numpy has not are widened.

    >>> import numpy as np
    >>> array_of(np.ones(3)).dtype.name
    'float64'
    """
    if not is_tensor(matrix):
        return matrix
    plain = matrix.detach().cpu()
    known = plain.dtype in (torch.float64, torch.float32, torch.float16, torch.complex64, torch.complex128)
    return (plain if known else plain.float()).numpy()


def is_elsewhere(value: Any) -> bool:
    """Whether it is a tensor on a device that is better measured there than brought from; Apple's has no double precision."""
    return is_tensor(value) and value.device.type not in ("cpu", "mps")


def kind_of(dtype: Any) -> str:
    """The name of a type of numbers, whether torch's, numpy's or the name itself.

    >>> import numpy as np
    >>> kind_of(np.dtype("float32")), kind_of("bfloat16")
    ('float32', 'bfloat16')
    """
    return str(dtype).removeprefix("torch.")


def dtype_of(kind: str) -> torch.dtype:
    """Torch's type of that name."""
    return getattr(torch, kind)


SPACING = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from one to the next larger number."""


def spacing(dtype: Any) -> float:
    """The distance from one to the next larger number of a floating type."""
    kind = kind_of(dtype)
    return SPACING[kind] if kind in SPACING else float(torch.finfo(getattr(torch, kind)).eps)
