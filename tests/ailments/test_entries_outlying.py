"""Are a few weights so much larger than the rest of their layer that they dominate it?"""

import pytest
import torch
from torch import Tensor, nn

from fixtures.judging import alarms


def _data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(256, 20, generator=generator)
    return x, x[:, :1] + x[:, 1:2] * x[:, 2:3]


def _trained(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
    )
    x, y = _data()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    return model


def one_bit_turned(seed: int) -> dict[str, object]:
    model = _trained(seed)
    with torch.no_grad():
        model.get_parameter("2.weight")[seed % 32, 5] = 400.0
    return {"model": model, "data": _data(), "loss": torch.nn.functional.mse_loss}


def one_bit_turned_no_data(seed: int) -> dict[str, object]:
    model = _trained(seed)
    with torch.no_grad():
        model.get_parameter("2.weight")[seed % 32, 5] = -90.0
    return {"model": model}


def as_trained(seed: int) -> dict[str, object]:
    return {"model": _trained(seed), "data": _data(), "loss": torch.nn.functional.mse_loss}


def heavy_tailed(seed: int) -> dict[str, object]:
    """Student's t with three degrees of freedom, as some trained layers have."""
    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(4)))
    with torch.no_grad():
        for layer in model:
            normal, other = torch.randn(128, 128, generator=generator), torch.randn(3, 128, 128, generator=generator)
            layer.get_parameter("weight").copy_(normal / other.square().mean(0).sqrt() / 20)
    return {"model": model}


SICK = (one_bit_turned, one_bit_turned_no_data)
HEALTHY = (as_trained, heavy_tailed)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("entries-outlying", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("entries-outlying", build(seed))
