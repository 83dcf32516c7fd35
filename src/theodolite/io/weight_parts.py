"""What is asked of a tensor while it is in memory: the tensor in hand, and the parts that look at it in the one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from theodolite.core.lazy_torch import is_tensor, torch

if TYPE_CHECKING:
    from torch import Tensor, nn

    from theodolite.io.store import Arrays


@dataclass(frozen=True)
class InHand:
    """A weight whose numbers are in memory, perhaps with those from before training, and where it belongs.

    ``values`` and ``first`` (before training) are arrays where they could be read without torch, else tensors. ``shapes`` are
    those of its module at least. What one part found and another needs too is kept in ``found``.
    """

    name: str
    values: Any
    first: Any
    owner: nn.Module | None
    shapes: Mapping[str, tuple[int, ...]]
    found: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def tensor(self) -> Tensor | None:
        """The numbers as a tensor."""
        return _tensor(self.values)

    @property
    def start(self) -> Tensor | None:
        """Those from before training as a tensor."""
        return _tensor(self.first)


def _tensor(values: Any) -> Tensor | None:
    return values if values is None or is_tensor(values) else torch.from_numpy(values)


@dataclass(frozen=True)
class WeightPart:
    """``find`` gives JSON's own types and arrays. A change of it that changes them has another ``version``."""

    find: Callable[[InHand], tuple[Any, Arrays]]
    version: int
    uses_start: bool = False
