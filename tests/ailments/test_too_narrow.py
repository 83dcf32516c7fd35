"""Is a layer too narrow for what must pass through it?"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import theodolite as th
from fixtures.fresh import digits_like, patient, seeded
from fixtures.judging import alarms


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
