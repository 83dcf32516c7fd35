"""Are the inputs so large, so far from zero or so different in scale that training suffers?"""

import pytest
import torch
from torch import Tensor, nn

from fixtures.judging import alarms


def _digits(scale: float, offset: float) -> tuple[Tensor, Tensor]:
    """Ten noisy patterns of 64 pixels in [0, 1], in other units."""
    generator = torch.Generator().manual_seed(5)
    patterns = (torch.rand(10, 64, generator=generator) > 0.6).float()
    y = torch.randint(0, 10, (768,), generator=generator)
    x = (patterns[y] + 0.35 * torch.randn(768, 64, generator=generator)).clamp(0, 1)
    return x * scale + offset, y


def _case(seed: int, x: Tensor, y: Tensor, *, norm: bool = False) -> dict[str, object]:
    torch.manual_seed(seed)
    first = [nn.BatchNorm1d(x.shape[1])] if norm else []
    model = nn.Sequential(*first, nn.Linear(x.shape[1], 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return {"model": model, "data": (x, y), "loss": nn.functional.cross_entropy, "optimizer": optimizer}


def raw_pixels(seed: int) -> dict[str, object]:
    return _case(seed, *_digits(255.0, 0.0))


def columns_in_units(seed: int) -> dict[str, object]:
    x, y = _digits(1.0, 0.0)
    return _case(seed, x * torch.logspace(0, 4, 64), y)


def pixels_in_the_unit_interval(seed: int) -> dict[str, object]:
    return _case(seed, *_digits(1.0, 0.0))


def normalized_first(seed: int) -> dict[str, object]:
    return _case(seed, *_digits(255.0, 0.0), norm=True)


class LooksUp(nn.Module):
    """A table whose first column is a code."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = nn.Embedding(20, 8)
        self.rest = nn.Sequential(nn.Linear(11, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.rest(torch.cat([self.codes(x[:, 0].long()), x[:, 1:]], 1))


def codes_beside_columns_in_units(seed: int) -> dict[str, object]:
    generator = torch.Generator().manual_seed(5)
    codes, numbers = torch.randint(0, 20, (768,), generator=generator), torch.randn(768, 3, generator=generator)
    y = (torch.randn(20, generator=generator)[codes] + numbers[:, 0] > 0).long()
    x = torch.cat([codes[:, None].float(), numbers * torch.tensor([1.0, 1e4, 300.0])], 1)
    torch.manual_seed(seed)
    model = LooksUp()
    adam = torch.optim.Adam(model.parameters(), lr=2e-3)
    return {"model": model, "data": (x, y), "loss": nn.functional.cross_entropy, "optimizer": adam}


class Decays(nn.Module):
    """What is left of u' + u / 1000 = 0, and u: the slope is taken inside, in the units of the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.curve = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_(True)
            u = self.curve(x)
            slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        return torch.cat([1e3 * slope + u, u], 1)


def milliseconds_in_an_equation(seed: int) -> dict[str, object]:
    generator = torch.Generator().manual_seed(5)
    x = 2000 * torch.rand(768, 1, generator=generator) * (torch.rand(768, 1, generator=generator) > 0.2)
    torch.manual_seed(seed)
    model = Decays()

    def loss(o: Tensor, start: Tensor) -> Tensor:
        return o[:, 0].square().mean() + 10 * (start[:, 0] * (o[:, 1] - 1).square()).mean()

    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    return {"model": model, "data": (x, (x == 0).float()), "loss": loss, "optimizer": adam}


def test_what_needs_inputs_in_their_units_has_them():
    found = alarms("inputs-not-scaled", milliseconds_in_an_equation(0))
    assert "for layer curve.0 alone" in found[0].remedy


SICK = (raw_pixels, columns_in_units, codes_beside_columns_in_units)
HEALTHY = (pixels_in_the_unit_interval, normalized_first)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("inputs-not-scaled", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("inputs-not-scaled", build(seed))


@pytest.mark.parametrize("share", [0.02, 0.0])
def test_a_number_that_stands_for_missing_entries_is_named(share):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(600, 8, generator=g)
    y = 2 * (x[:, 0] > 0) + (x[:, 1] > 0)
    x = torch.where(torch.rand(x.shape, generator=g) < share, torch.tensor(-9999.0), x)
    found = alarms("inputs-not-scaled", _case(0, (x - x.mean(0)) / x.std(0), y))
    assert [one.suggested for one in found] == ([{"fill": "missing"}] if share else [])
