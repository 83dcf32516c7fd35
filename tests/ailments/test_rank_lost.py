"""Do the features collapse into far fewer directions than the task needs?"""

import pytest
import torch

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


SICK = (_sick,)
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
