"""Is the temperature of a contrastive loss so high that logits cannot differ, or so low that all saturate?"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms, judged


def pairs(seed):
    """Two noisy views of each of 512 points."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(512, 12, generator=g)
    return torch.stack([x + 0.3 * torch.randn(512, 12, generator=g) for _ in range(2)], 1)


class Encoder(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.form, self.net = form, nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        z = self.net(x)
        return z if self.form == "one" else (z[:, 0], z[:, 1])


def info_nce(temperature, form):
    def loss(z, _):
        a, b = (z[:, 0], z[:, 1]) if form == "one" else z
        logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T / temperature
        return F.cross_entropy(logits, torch.arange(len(a)))

    return loss


def nt_xent(temperature):
    """That of SimCLR: each of the 2n views is told from the 2n - 2 others."""

    def loss(z, _):
        both = F.normalize(torch.cat([z[:, 0], z[:, 1]]), dim=-1)
        logits = (both @ both.T / temperature).masked_fill(torch.eye(len(both), dtype=torch.bool), -1e9)
        n = len(z)
        return F.cross_entropy(logits, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))

    return loss


def given(loss, form="one", seed=0):
    torch.manual_seed(seed)
    return {"model": Encoder(form), "data": (pairs(seed), torch.zeros(512)), "loss": loss}


SICK = (lambda seed: given(info_nce(100.0, "one"), "one"),)


@pytest.mark.parametrize("form", ["one", "two"])
def test_similarities_that_cannot_differ(form):
    (found,) = alarms("temperature-off", given(info_nce(100.0, form), form))
    assert "can hardly fall" in found.says and "log 64" in found.says


def test_a_model_that_normalizes_its_answers_itself():
    class Unit(Encoder):
        def forward(self, x):
            return F.normalize(super().forward(x), dim=-1)

    torch.manual_seed(0)
    for temperature, off in ((100.0, True), (0.1, False)):

        def loss(z, _, temperature=temperature):
            return F.cross_entropy(z[:, 0] @ z[:, 1].T / temperature, torch.arange(len(z)))

        assert (
            bool(alarms("temperature-off", {"model": Unit("one"), "data": (pairs(0), torch.zeros(512)), "loss": loss}))
            == off
        )


@pytest.mark.parametrize("loss", [info_nce(1e-4, "one"), nt_xent(1e-4)])
def test_logits_that_saturate(loss):
    (found,) = alarms("temperature-off", given(loss))
    assert "saturated" in found.says


@pytest.mark.parametrize("temperature", [0.02, 0.07, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("loss", [lambda t: info_nce(t, "one"), nt_xent])
def test_usual_temperatures_are_left_alone(loss, temperature):
    assert not judged("temperature-off", given(loss(temperature)))


def test_losses_that_ask_something_else_are_not_asked():
    torch.manual_seed(0)
    x = torch.randn(256, 12)
    for loss, y, outputs in (
        (F.cross_entropy, torch.arange(256) % 4, 4),
        (F.mse_loss, torch.randn(256, 3), 3),
        (lambda o, y: F.mse_loss(o, y) + 4.0, torch.randn(256, 3), 3),
        (lambda o, y: F.cross_entropy(o / 1000, y), torch.arange(256) % 4, 4),
    ):
        assert not judged("temperature-off", {"model": nn.Linear(12, outputs), "data": (x, y), "loss": loss})


class Pairs(nn.Module):
    """Answers with the logits of all pairs of a batch: the temperature is inside."""

    def __init__(self, temperature):
        super().__init__()
        self.temperature, self.net = temperature, nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        a, b = (F.normalize(self.net(x[:, view]), dim=-1) for view in (0, 1))
        return a @ b.T / self.temperature


@pytest.mark.parametrize(("temperature", "off"), [(50.0, True), (0.1, False), (1e-4, True)])
def test_a_temperature_inside_the_model_is_seen(temperature, off):
    torch.manual_seed(0)
    model = Pairs(temperature)
    known = {
        "data": (pairs(0), torch.zeros(512)),
        "loss": lambda o, _: F.cross_entropy(o, torch.arange(len(o))),
        "optimizer": torch.optim.Adam(model.parameters(), 3e-3),
    }
    assert bool(alarms("temperature-off", {"model": model, **known})) == off
    assert not alarms("samples-mixed", {"model": model, **known})
