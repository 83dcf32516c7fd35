"""Do the inputs say anything about the targets at all?"""

import pytest
import torch
from torch import Tensor, nn

from fixtures.judging import alarms


def _case(seed: int, related: float, *, steps: int = 60) -> dict[str, object]:
    """Three classes of 600 samples, a share of the labels at their own place."""
    generator = torch.Generator().manual_seed(seed)

    def draw(n: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(n, 10, generator=generator)
        y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0.3).long()
        mixed = torch.rand(n, generator=generator) > related
        return x, torch.where(mixed, y[torch.randperm(n, generator=generator)], y)

    data, validation = draw(600), draw(600)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[0]), data[1]).backward()
        optimizer.step()
    return {
        "model": model,
        "data": data,
        "validation": validation,
        "loss": nn.functional.cross_entropy,
        "optimizer": optimizer,
    }


def shuffled(seed: int) -> dict[str, object]:
    return _case(seed, 0.0)


def shuffled_not_yet_trained(seed: int) -> dict[str, object]:
    return _case(seed, 0.0, steps=0)


def related(seed: int) -> dict[str, object]:
    return _case(seed, 1.0)


def half_noise(seed: int) -> dict[str, object]:
    return _case(seed, 0.6)


def related_not_yet_trained(seed: int) -> dict[str, object]:
    return _case(seed, 1.0, steps=0)


SICK = (shuffled, shuffled_not_yet_trained)
HEALTHY = (related, half_noise, related_not_yet_trained)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("labels-unrelated", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("labels-unrelated", build(seed))
