"""Are a few weights so much larger than the rest of their layer that they dominate it?"""

import pytest
import torch
from torch import Tensor, nn

from fixtures.judging import alarms, judged
from theodolite.core.ailment import times


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


def three_in_a_small_layer(seed: int) -> dict[str, object]:
    """With themselves in the standard deviation none of three among 288 lies more than ten of those above."""
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3))
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.1)
        model.get_parameter("0.weight").view(-1)[[7, 90, 201]] = torch.tensor([900.0, -800.0, 1000.0])
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


SICK = (one_bit_turned, one_bit_turned_no_data, three_in_a_small_layer)
HEALTHY = (as_trained, heavy_tailed)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("entries-outlying", build(0))
    assert found
    assert found[0].says and found[0].remedy


def test_clamping_is_advised_where_it_was_tried_and_never_unseen():
    given = one_bit_turned(0)
    model, (x, y) = given["model"], given["data"]
    before = nn.functional.mse_loss(model(x), y)
    exec(alarms("entries-outlying", given)[0].remedy.split("; ")[1], {"model": model})
    assert nn.functional.mse_loss(model(x), y) < 0.01 * before
    assert "clamp" not in alarms("entries-outlying", one_bit_turned_no_data(0))[0].remedy


def test_the_gap_that_is_told_of_several_outliers_is_that_behind_the_last():
    weight = 0.05 * torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    weight[3, :5] = torch.tensor([40.0, 38.0, 36.0, 34.0, 32.0])
    found = judged("entries-outlying", {"state_dict": {"a.weight": weight, "b.weight": weight.flip(0)[:60] * 1.5}})[0]
    ratio = 32.0 / float(weight[weight < 30].abs().max())
    assert (
        found.says.startswith("5 of 4096 entries")
        and f"the smallest of them is {times(ratio)} times as large" in found.says
    )


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("entries-outlying", build(seed))
