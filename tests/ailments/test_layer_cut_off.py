"""Are there parameters that the answers depend on and that no gradient reaches?"""

import pytest
from torch import Tensor, nn

from fixtures.fresh import digits_like
from fixtures.judging import alarms


class _Cut(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


def _sick(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), _Cut(), nn.Linear(32, 4)))


def _zero_head(seed: int) -> dict[str, object]:
    def make() -> nn.Module:
        last = nn.Linear(32, 4)
        nn.init.zeros_(last.weight)
        return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), last)

    return digits_like(seed, make)


def _frozen(seed: int) -> dict[str, object]:
    def make() -> nn.Module:
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
        model[0].requires_grad_(False)
        return model

    return digits_like(seed, make)


SICK = (_sick,)
HEALTHY = (_zero_head, _frozen)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("layer-cut-off", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("layer-cut-off", build(seed))
