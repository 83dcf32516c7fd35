"""Telgarsky's sawtooth: a narrow ReLU network whose number of teeth doubles with every fold."""

import torch
from torch import nn

from theodolite.core.checks import InputError


@torch.no_grad()
def sawtooth(folds: int, *, compact: bool = False) -> nn.Sequential:
    r"""The tent map $f(x)=\sigma(2\sigma(x)-4\sigma(x-\tfrac12))$ applied ``folds`` times: $2^L$ pieces on [0, 1].

    In full every tent keeps its outer ReLU (the last one apart): 3L - 1 units in 2L - 1 hidden layers. ``compact`` leaves
    them out, which changes nothing on [0, 1]: 2L units in L hidden layers. Source: telgarsky2016.

    >>> sawtooth(2)(torch.tensor([[0.0], [0.25], [0.5], [0.75]], dtype=torch.float64)).flatten().tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    if folds < 1:
        raise InputError(f"expected at least one fold, got {folds}")
    layers: list[nn.Module] = []
    for k in range(folds):
        joined = compact and k > 0
        first = nn.Linear(2 if joined else 1, 2, dtype=torch.float64)
        first.weight.copy_(torch.tensor([[2.0, -4.0]] * 2 if joined else [[1.0]] * 2))
        first.bias.copy_(torch.tensor([0.0, -0.5]))
        layers += [first, nn.ReLU()]
        if not compact or k == folds - 1:
            second = nn.Linear(2, 1, bias=False, dtype=torch.float64)
            second.weight.copy_(torch.tensor([[2.0, -4.0]]))
            layers += [second] if k == folds - 1 else [second, nn.ReLU()]
    return nn.Sequential(*layers)
