"""SReLU as a torch layer."""

import torch
from torch import Tensor, nn

from theodolite.theory.capacity import smoothed_relu, smoothing_transform


class SReLU(nn.Module):
    """A ReLU made 2k times continuously differentiable within ``smoothing_width`` of zero, and a ReLU outside; order 0 is ReLU.

    >>> SReLU(1)(torch.tensor([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.1666666716337204, 3.0]
    """

    def __init__(self, order: int = 1, *, smoothing_width: float = 1.0) -> None:
        super().__init__()
        # refuses a wrong order or width now, not at the first input
        smoothing_transform(torch.zeros(0), order, smoothing_width=smoothing_width)
        self.order, self.smoothing_width = order, float(smoothing_width)

    def forward(self, t: Tensor) -> Tensor:
        """The activation of each entry."""
        return smoothed_relu(t, self.order, smoothing_width=self.smoothing_width)

    def extra_repr(self) -> str:
        """Order and width, for printing."""
        return f"order={self.order}, smoothing_width={self.smoothing_width:g}"
