"""Do the features collapse into far fewer directions than the task needs?"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fixtures.fresh import digits_like, fresh, fresh_residual, stack
from fixtures.judging import alarms


def _sick(seed: int) -> dict[str, object]:
    given = digits_like(seed, lambda: stack(3, width=64), optimizer="sgd", lr=0.0005)
    with torch.no_grad():
        for place in (2, 4):
            weight = given["model"][place].weight
            u, _, v = torch.linalg.svd(weight)
            weight.copy_(weight.norm() * torch.outer(u[:, 0], v[0]))
    return given


class _Block(nn.Module):
    """Attention and two layers, normalized, with no path around either."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        mixed = F.scaled_dot_product_attention(*self.mixed(self.norm1(x)).chunk(3, -1))
        return self.mlp(self.norm2(self.out(mixed)))


class _Seen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(2, 32)
        self.places = nn.Parameter(0.1 * torch.randn(8, 32))
        self.blocks = nn.Sequential(*[_Block(32) for _ in range(6)])
        self.head = nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.embed(x.reshape(len(x), 8, 2)) + self.places).mean(1))


SICK = (_sick, fresh("attention", _Seen, optimizer="adam", lr=0.002))
HEALTHY = (fresh("plain", lambda: stack(3, width=64), optimizer="sgd", lr=0.02), fresh_residual(6))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("rank-lost", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("rank-lost", build(seed))
