"""How many linear pieces a network has along a line, counted exactly by following every kink through the layers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

THRESHOLDS = {nn.ReLU: (0.0,), nn.Hardtanh: (-1.0, 1.0)}


def pieces_on_line(model: nn.Sequential, start: Tensor, end: Tensor) -> int:
    """The linear pieces of a one-output network of linear layers with ReLU or hard-tanh between two points.

    Between neighbouring kinks every unit is linear, so where it meets a threshold is found by one division; kinks that cancel
    in the output are not counted.

    >>> net = nn.Sequential(nn.Linear(1, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False))
    >>> with torch.no_grad(): _ = net[0].weight.copy_(torch.tensor([[1.0], [-1.0]])), net[2].weight.fill_(1.0)
    >>> pieces_on_line(net, torch.tensor([-1.0]), torch.tensor([1.0]))
    2
    """
    knots = np.array([0.0, 1.0])
    first, last = start.double().numpy(), end.double().numpy()
    values = first + knots[:, None] * (last - first)
    for module in model:
        if isinstance(module, nn.Linear):
            weight = module.weight.detach().double().numpy()
            values = values @ weight.T
            if module.bias is not None:
                values = values + module.bias.detach().double().numpy()
        elif type(module) in THRESHOLDS:
            knots, values = _with_kinks(knots, values, THRESHOLDS[type(module)])
            values = module(torch.from_numpy(values)).numpy()
        else:
            raise TypeError(f"expected linear layers, ReLU and Hardtanh, got {type(module).__name__}; use these")
    slopes = np.diff(values[:, 0]) / np.diff(knots)
    scale = np.abs(slopes).max() + 1e-300
    return int((np.abs(np.diff(slopes)) > 1e-9 * scale).sum()) + 1


def _with_kinks(knots: np.ndarray, values: np.ndarray, thresholds: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Knots with the places added where a unit meets a threshold, and the units' values there."""
    new = [knots]
    for threshold in thresholds:
        low, high = values[:-1] - threshold, values[1:] - threshold
        interval, unit = np.nonzero(low * high < 0)
        share = low[interval, unit] / (low[interval, unit] - high[interval, unit])
        new.append(knots[interval] + share * (knots[interval + 1] - knots[interval]))
    every = np.unique(np.concatenate(new))
    every = every[np.concatenate([[True], np.diff(every) > 1e-13])]
    return every, np.stack([np.interp(every, knots, column) for column in values.T], axis=1)
