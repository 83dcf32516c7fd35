"""SReLU as a torch layer."""

from __future__ import annotations

from torch import Tensor, nn

from theodolite.theory.capacity import smoothed_relu, smoothing_transform


class SReLU(nn.Module):
    """A ReLU made 2k times continuously differentiable within ``width`` of zero, and a ReLU outside; order 0 is ReLU.

    >>> import torch
    >>> SReLU(1)(torch.tensor([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.1666666716337204, 3.0]
    """

    def __init__(self, order: int = 1, *, width: float = 1.0) -> None:
        super().__init__()
        smoothing_transform(
            _nothing(), order, width=width
        )  # refuses a wrong order or width now, not at the first input
        self.order, self.width = order, float(width)

    def forward(self, t: Tensor) -> Tensor:
        """The activation of each entry."""
        return smoothed_relu(t, self.order, width=self.width)

    def extra_repr(self) -> str:
        """Order and width, for printing."""
        return f"order={self.order}, width={self.width:g}"


def _nothing() -> Tensor:
    import torch

    return torch.zeros(0)
