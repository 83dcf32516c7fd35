"""Does no gradient reach parameters that the answers depend on?"""

import pytest
import torch
from torch import Tensor, nn

from fixtures.fresh import digits_like
from fixtures.judging import alarms


class _Cut(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


def _sick(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), _Cut(), nn.Linear(32, 4)))


class _Round(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.round()


def _rounded(seed: int) -> dict[str, object]:
    """Counts, so that the answers are made whole numbers: no parameter has a gradient."""
    x = torch.randn(128, 6, generator=torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1), _Round())
    optimizer = torch.optim.Adam(model.parameters())
    return {
        "model": model,
        "data": (x, (4 + 2 * x[:, :1]).round()),
        "loss": nn.functional.mse_loss,
        "optimizer": optimizer,
    }


def _blind(seed: int) -> dict[str, object]:
    """One output under a cross-entropy: no gradient either, but the loss is at fault."""
    x = torch.randn(128, 6, generator=torch.Generator().manual_seed(seed))
    model = nn.Linear(6, 1)
    optimizer = torch.optim.Adam(model.parameters())
    return {
        "model": model,
        "data": (x, 0 * x[:, 0].long()),
        "loss": nn.functional.cross_entropy,
        "optimizer": optimizer,
    }


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


def _with_another_forward(build):
    """The same, run by a function in the place of its forward, as libraries put it there: copies must not run the original."""

    def made(seed: int) -> dict[str, object]:
        given = build(seed)
        plain = given["model"].forward
        given["model"].forward = lambda x: plain(x)
        return given

    return made


SICK = (_sick, _rounded, _with_another_forward(_sick))
HEALTHY = (_zero_head, _blind, _frozen, _with_another_forward(_zero_head))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("layer-cut-off", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("layer-cut-off", build(seed))


def test_saturated_units_are_not_cut_off():
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = nn.GRU(1, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.gru(x)[0][:, -1])

    torch.manual_seed(0)
    x = 5000 + 1000 * torch.randn(64, 10, 1)  # every gate is at its end, where its slope is zero
    model = Recurrent()
    given = {"model": model, "data": (x, x[:, -1] + 1), "loss": nn.functional.mse_loss}
    assert not alarms("layer-cut-off", {**given, "optimizer": torch.optim.Adam(model.parameters())})


@pytest.mark.parametrize(("at", "places", "told"), [(0, 6, True), (-1, 6, False), (-1, 1, False)])
def test_a_recurrent_network_of_which_only_the_first_state_is_read(at, places, told):
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.gru(x)[0][:, at])

    torch.manual_seed(0)
    model, x = Recurrent(), torch.randn(64, places, 3)
    given = {"model": model, "data": (x, x.sum(1)[:, :1]), "loss": nn.functional.mse_loss}
    found = alarms("layer-cut-off", {**given, "optimizer": torch.optim.Adam(model.parameters())})
    assert ["first position" in finding.says for finding in found] == [True] * told
