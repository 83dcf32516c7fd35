"""Is a layer too narrow for what must pass through it?"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import theodolite as th
from fixtures.fresh import digits_like, patient, seeded
from fixtures.judging import alarms, subject_of
from theodolite import catalogue


def _through(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 4)
    )


def _linear(seed: int) -> dict[str, object]:
    """The sign of a product, which no linear layer tells."""
    x = torch.randn(768, 2, generator=torch.Generator().manual_seed(seed))
    model = seeded(seed, lambda: nn.Sequential(nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 2)))
    return patient(model, (x, (x[:, 0] * x[:, 1] > 0).long()))


def _sick(seed: int) -> dict[str, object]:
    """An autoencoder of points in six dimensions through a code of one number."""
    frame = torch.randn(6, 16, generator=torch.Generator().manual_seed(seed))
    points = torch.randn(768, 6, generator=torch.Generator().manual_seed(seed + 1)) @ frame
    layers = (nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 16))
    return patient(seeded(seed, lambda: nn.Sequential(*layers)), (points, points), loss=F.mse_loss)


def _wide(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: _through(24), lr=5e-3)


def _code(seed: int) -> dict[str, object]:
    """An autoencoder whose code is as narrow as the data allow: points on a plane in 16 dimensions."""
    plane = torch.randn(2, 16, generator=torch.Generator().manual_seed(seed))
    points = torch.randn(768, 2, generator=torch.Generator().manual_seed(seed + 1)) @ plane
    model = seeded(
        seed,
        lambda: nn.Sequential(
            nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3), nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 16)
        ),
    )
    return patient(model, (points, points), loss=F.mse_loss)


SICK = (_sick, _linear)
HEALTHY = (_wide, _code)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("too-narrow", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("too-narrow", build(seed))


@pytest.mark.parametrize(("units", "told"), [(2, True), (8, False)])
def test_a_gate_on_which_few_units_are_stuck(units, told):
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(2, units), nn.ReLU(), nn.Linear(units, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    y, loss = torch.tensor([[0.0], [1.0], [1.0], [0.0]]), F.binary_cross_entropy_with_logits
    watch = th.Watch(model, probe=(x, y), loss=loss, optimizer=optimizer, every=100)
    for step in range(200):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        watch(step)
    assert ("too-narrow" in [finding.name for finding in watch.diagnosis.findings]) is told


class _Chosen(nn.Module):
    """One of two tokens, as a third says: the three pass through a layer of twice as many units as a token has numbers."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.inner, self.out = nn.Linear(3 * width, 2 * width), nn.Linear(2 * width, tokens)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.inner(self.embed(x).flatten(1))))


@pytest.mark.parametrize(("width", "is_narrow"), [(3, True), (8, False)])
def test_a_run_of_which_twice_the_width_learns_more_than_twice_as_much_is_too_narrow(width, is_narrow):
    torch.manual_seed(0)
    x = torch.randint(0, 12, (3000, 3))
    y = torch.where(x[:, 0] < 6, x[:, 1], x[:, 2])
    model = _Chosen(12, width)
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    known = {"loss": F.cross_entropy, "optimizer": optimizer, "validation": (x[2500:], y[2500:])}
    watch = th.Watch(model, probe=(x[:256], y[:256]), every=50, level="cheap", **known)
    for step in range(200):
        watch(step)
        rows = torch.randint(0, 2500, (100,))
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    found = [f for f in watch.diagnosis.findings if f.severity != "note"]
    assert [f.name for f in found] == ["too-narrow"] * is_narrow
    assert all("more than twice as much" in f.says and f.suggested == {"width": 6} for f in found)


class _Opinion(nn.Module):
    """One of two classes of sentences, their words sixteen numbers each."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.gru, self.out = nn.Embedding(120, 16), nn.GRU(16, 24, batch_first=True), nn.Linear(24, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.gru(self.words(x))[0][:, -1])


def test_words_of_which_two_classes_are_told_need_not_be_as_many_numbers():
    x = torch.randint(0, 120, (320, 16), generator=torch.Generator().manual_seed(0))
    subject = subject_of(patient(seeded(0, _Opinion), (x, ((x < 20).sum(1) > 2).long())))
    assert not list(catalogue.ailment("too-narrow").interventions(subject))
