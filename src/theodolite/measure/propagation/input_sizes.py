"""The size of inputs: mean square, offset and scale, and how much the scales of columns or channels differ."""

from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core.checks import as_tensor, has_values, real_values

RANGE_SHARE = 0.1
"""A column is divided by no less than this share of its range: rare pixels are not blown up."""


@dataclass(frozen=True, eq=False)
class InputScales:
    """Inputs as a whole (``mean_square``, ``offset``, ``scale``) and by column: ``spread`` is the ratio of large to small ranges.

    Between the 10th and the 90th hundredth of the columns that vary (1 where there are fewer than two). ``center`` and ``width``
    are the statistics to standardize by; they have the shape of one sample, or can be broadcast to it.
    """

    mean_square: float
    offset: float
    scale: float
    spread: float
    center: Tensor
    width: Tensor

    def standardized(self, x: Tensor) -> Tensor:
        """Inputs less their center, over their width."""
        return ((x.float() - self.center) / self.width).to(x.dtype)


def input_scales(x: Tensor) -> InputScales:
    """The scales of inputs (n, ...): columns are the last axis of (n, d) and (n, length, d), the channels of images.

    >>> x = torch.tensor([[0.0, 0.0], [2.0, 2000.0]])
    >>> found = input_scales(x)
    >>> round(found.spread), found.standardized(x)[0]
    (251, tensor([-1., -1.]))
    """
    x = as_tensor(x)
    has_values(x=x)
    real_values(x=x)
    values = x.detach().double()
    axis = 1 if values.ndim > 3 else values.ndim - 1
    columns = values.movedim(axis, 0).flatten(1)  # (columns, n ...)
    ranges = columns.amax(1) - columns.amin(1)
    alive = ranges > 0
    spread = 1.0
    if int(alive.sum()) > 1:
        ends = torch.tensor([0.1, 0.9], dtype=values.dtype, device=x.device)
        low, high = torch.quantile(ranges[alive].log(), ends)  # of logarithms, so that few columns do not blur it
        spread = float((high - low).exp())
    mean, std = float(values.mean()), float(values.std(correction=0))
    if spread > 10 or values.ndim in (4, 5):
        shape = [1] * (values.ndim - 1)
        shape[axis - 1] = -1
        deviation = torch.maximum(columns.std(1, correction=0), RANGE_SHARE * ranges)
        width = torch.where(alive, deviation, torch.ones_like(deviation)).reshape(shape)
        center = columns.mean(1).reshape(shape)
    else:
        center, width = values.new_tensor(mean), values.new_tensor(std if std > 0 else 1.0)
    return InputScales(float(values.square().mean()), mean, std, spread, center.float(), width.float())
