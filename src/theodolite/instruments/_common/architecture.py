"""What kind of network it is, as far as its modules tell."""

from torch import nn

BENDING = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.Hardtanh, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
AFFINE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Flatten, nn.Unflatten, nn.Identity, nn.Dropout)


def bends_only(model: nn.Module) -> bool:
    """Whether it is a sequence of modules that are affine or piecewise linear, so that it has no curvature of its own.

    >>> bends_only(nn.Sequential(nn.Linear(2, 3), nn.ReLU())), bends_only(nn.Sequential(nn.Linear(2, 3), nn.Tanh()))
    (True, False)
    """
    return all(type(module) in (nn.Sequential, *BENDING, *AFFINE) for module in model.modules())
