"""What is carried through a network of images: kernels of pairs of pixels, and what images are with themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from torch import Tensor


@dataclass
class PixelKernels:
    """Both kernels of pairs of images, of equal pixels (n, m, *space) or of all pairs of pixels (n, m, *space, *space)."""

    k: Tensor
    t: Tensor | None
    distance: Tensor | None  # a + b - 2k of equal pixels: keeps the digits that k loses as images become alike
    space: int  # how many axes an image has; 0 once it has been read out
    full: bool  # whether all pairs of pixels are kept
    flat: bool = False

    def mapped(self, change: Callable[[Tensor], Tensor]) -> PixelKernels:
        """Every block sent through the same linear map."""
        t, distance = (None if block is None else change(block) for block in (self.t, self.distance))
        return replace(self, k=change(self.k), t=t, distance=distance)

    def of_equal_pixels(self) -> PixelKernels:
        """Only the covariances of each pixel with the same pixel of the other image."""
        if not self.full:
            return self
        shape = self.k.shape[: 2 + self.space]
        size = math.prod(shape[2:])
        found = self.mapped(lambda b: b.reshape(*shape[:2], size, size).diagonal(dim1=2, dim2=3).reshape(shape))
        return replace(found, full=False)


@dataclass
class Sides:
    """What images are with themselves before each step that asks: given for both sides, or read off as it is met."""

    rows: list[Tensor] = field(default_factory=list)
    columns: list[Tensor] = field(default_factory=list)
    given: bool = False
    position: int = 0

    def at(self, signal: PixelKernels, change: Callable[[Tensor], Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The variances of pixels (n, *space) before the next step, changed or not, ready to be multiplied with blocks."""
        rows, columns = (v if change is None else change(v) for v in self._both(signal.of_equal_pixels().k))
        rows, columns = rows[:, None], columns[None] if self.given else columns[:, None]
        if not signal.full:
            return rows, columns
        ones = (1,) * signal.space
        return rows.reshape(*rows.shape, *ones), columns.reshape(*columns.shape[:2], *ones, *columns.shape[2:])

    def whole(self, signal: PixelKernels) -> tuple[Tensor, Tensor]:
        """The covariances of all pairs of pixels, (n, 1, p, p) and (1, m, p, p)."""
        size = math.prod(signal.k.shape[2 : 2 + signal.space])
        rows, columns = (v.reshape(len(v), size, size) for v in self._both(signal.k))
        return rows[:, None], columns[None] if self.given else columns[:, None]

    def _both(self, own: Tensor) -> tuple[Tensor, Tensor]:
        if not self.given:
            self.rows.append(own[:, 0])
            return own[:, 0], own[:, 0]
        self.position += 1
        return self.rows[self.position - 1], self.columns[self.position - 1]
