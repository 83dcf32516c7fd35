"""Which networks are piecewise linear by their modules."""

import pytest
import torch
from torch import nn

from theodolite.instruments._common.architecture import AFFINE, BENDING, bends_only


@pytest.mark.parametrize(
    "kind", [kind for kind in (*BENDING, *AFFINE) if not kind.__name__.endswith(("1d", "2d", "3d"))]
)
def test_what_is_called_piecewise_linear_has_no_second_difference_away_from_its_bends(kind):
    made = {nn.Linear: lambda: nn.Linear(3, 3), nn.Unflatten: lambda: nn.Unflatten(1, (3, 1))}.get(kind, kind)().eval()
    x = torch.tensor([[0.3, -0.4, 0.2]])
    step = 1e-2 * torch.tensor([[1.0, -1.0, 2.0]])
    with torch.no_grad():
        second = made(x + step) - 2 * made(x) + made(x - step)
    assert float(second.abs().max()) < 1e-6
    assert bends_only(nn.Sequential(nn.Linear(3, 3), made))


@pytest.mark.parametrize("layer", [nn.Tanh(), nn.Softmax(-1), nn.LayerNorm(3), nn.MultiheadAttention(3, 1)])
def test_what_curves_or_is_not_known_is_not(layer):
    assert not bends_only(nn.Sequential(nn.Linear(3, 3), layer))
