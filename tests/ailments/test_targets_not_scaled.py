"""Are regression targets so large or so far from zero that the outputs cannot reach them in time?"""

import pytest
import torch
from torch import nn

from fixtures.judging import alarms, subject_of
from theodolite.ailments.targets_not_scaled import compared_columns


def _case(seed: int, scale: float, offset: float, *, adam: bool) -> dict[str, object]:
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(768, 10, generator=generator)
    y = x[:, :1] + torch.sin(x[:, 1:2]) + 0.1 * torch.randn(768, 1, generator=generator)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))
    kind = torch.optim.Adam(model.parameters(), lr=5e-3) if adam else torch.optim.SGD(model.parameters(), lr=0.05)
    return {"model": model, "data": (x, y * scale + offset), "loss": nn.functional.mse_loss, "optimizer": kind}


def house_prices(seed: int) -> dict[str, object]:
    return _case(seed, 8e4, 2e5, adam=True)


def gradients_too_large(seed: int) -> dict[str, object]:
    return _case(seed, 300.0, 1000.0, adam=False)


def unit_size(seed: int) -> dict[str, object]:
    return _case(seed, 1.0, 0.0, adam=True)


def degrees(seed: int) -> dict[str, object]:
    """Targets of standard deviation 3 about 2: reached without help."""
    return _case(seed, 3.0, 2.0, adam=True)


def slow_but_sure(seed: int) -> dict[str, object]:
    """Targets of standard deviation 8 about 19: most is learned in some hundred steps, and the rest goes on being learned."""
    generator = torch.Generator().manual_seed(4)
    x = torch.rand(900, 6, generator=generator)
    y = 5 + 20 * x[:, :1] * x[:, 1:2] + 12 * (x[:, 2:3] > 0.5) + 5 * x[:, 3:4]
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    return {"model": model, "data": ((x - 0.5) / 0.29, y), "loss": nn.functional.mse_loss, "optimizer": adam}


def _kind_and_amount(seed: int, scale: float, offset: float) -> dict[str, object]:
    """A class and a number in one table of targets, each with outputs of its own."""
    given = _case(seed, 1.0, 0.0, adam=True)
    x, amount = given["data"]
    kind = (x[:, 2] > 0).float() + (x[:, 3] > 0).float()
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 4))

    def loss(o, y):
        return nn.functional.cross_entropy(o[:, 1:], y[:, 0].long()) + nn.functional.mse_loss(o[:, 0], y[:, 1])

    data = (x, torch.stack([kind, amount[:, 0] * scale + offset], 1))
    return {"model": model, "data": data, "loss": loss, "optimizer": torch.optim.Adam(model.parameters(), lr=5e-3)}


def amounts_beside_kinds(seed: int) -> dict[str, object]:
    return _kind_and_amount(seed, 9e3, 2e4)


def scaled_amounts_beside_kinds(seed: int) -> dict[str, object]:
    return _kind_and_amount(seed, 1.0, 0.0)


def test_the_column_of_numbers_is_named():
    (found,) = alarms("targets-not-scaled", amounts_beside_kinds(0))
    assert found.remedy.startswith("y[:, 1] = (y[:, 1] - ") and "output[:, 0]" in found.remedy


def amounts_of_another_head(seed: int) -> dict[str, object]:
    """The same, and each has a tensor of its own in the answer."""
    given = _kind_and_amount(seed, 9e3, 2e4)

    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.kind, self.amount = (
                nn.Sequential(nn.Linear(10, 48), nn.ReLU()),
                nn.Linear(48, 3),
                nn.Linear(48, 1),
            )

        def forward(self, x):
            return self.kind(self.body(x)), self.amount(self.body(x))[:, 0]

    def loss(o, y):
        return nn.functional.cross_entropy(o[0], y[:, 0].long()) + nn.functional.mse_loss(o[1], y[:, 1])

    model = Heads()
    return {**given, "model": model, "loss": loss, "optimizer": torch.optim.Adam(model.parameters(), lr=5e-3)}


def quantiles(seed: int, scale: float = 8e4, offset: float = 2e5) -> dict[str, object]:
    """Three outputs beside one target."""
    given = _case(seed, scale, offset, adam=True)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 3))
    shares = torch.tensor([0.1, 0.5, 0.9])

    def loss(o, y):
        return torch.maximum(shares * (y - o), (shares - 1) * (y - o)).mean()

    return {**given, "model": model, "loss": loss, "optimizer": torch.optim.Adam(model.parameters(), lr=5e-3)}


def scaled_quantiles(seed: int) -> dict[str, object]:
    return quantiles(seed, 1.0, 0.0)


def boxes_in_pixels(seed: int) -> dict[str, object]:
    """Four numbers of which each is a small part of the loss."""
    given = _case(seed, 1.0, 0.0, adam=True)
    x, amount = given["data"]
    kind = (x[:, 2] > 0).float() + (x[:, 3] > 0).float()
    boxes = torch.cat([amount, amount + x[:, 4:5], x[:, 5:7]], 1) * 200 + 500
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 7))

    def loss(o, y):
        return nn.functional.cross_entropy(o[:, :3], y[:, 0].long()) + nn.functional.smooth_l1_loss(o[:, 3:], y[:, 1:])

    data = (x, torch.cat([kind[:, None], boxes], 1))
    return {"model": model, "data": data, "loss": loss, "optimizer": torch.optim.Adam(model.parameters(), lr=5e-3)}


@pytest.mark.parametrize(
    ("build", "outputs"),
    [
        (amounts_of_another_head, {1: [(1, 0)]}),
        (quantiles, {0: [(0, 0), (0, 1), (0, 2)]}),
        (boxes_in_pixels, {column: [(0, column + 2)] for column in range(1, 5)}),
    ],
)
def test_the_outputs_that_a_column_is_compared_with(build, outputs):
    assert compared_columns(subject_of(build(0))) == outputs


def test_outputs_are_named_as_one_would_type_them():
    found = [alarms("targets-not-scaled", build(0))[0].remedy for build in (amounts_of_another_head, quantiles)]
    assert found[0].startswith("y[:, 1] = (y[:, 1] - ") and " and output[1] * " in found[0]
    assert found[1].startswith("y = (y - ") and " and output * " in found[1]


SICK = (house_prices, gradients_too_large, amounts_beside_kinds, amounts_of_another_head, quantiles, boxes_in_pixels)
HEALTHY = (unit_size, degrees, slow_but_sure, scaled_amounts_beside_kinds, scaled_quantiles)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("targets-not-scaled", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("targets-not-scaled", build(seed))


@pytest.mark.parametrize("seed", range(4))
def test_an_absolute_error_compares_a_reward_with_the_output_of_each_action(seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.stack([torch.randint(3, (200,), generator=g).float(), 400 * torch.randn(200, generator=g) - 900], 1)

    def loss(o, y):
        return nn.functional.smooth_l1_loss(o.gather(1, y[:, :1].long())[:, 0], y[:, 1])

    one = subject_of({"model": nn.Linear(5, 3), "data": (torch.randn(200, 5, generator=g), y), "loss": loss})
    assert compared_columns(one) == {1: [(0, 0), (0, 1), (0, 2)]}
