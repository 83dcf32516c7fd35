"""Does the network fit its training data while its held-out answers are no better than ignoring the input?"""

import pytest
import torch

from fixtures.judging import alarms
from fixtures.trained import patient

SICK = (lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-2), samples=256, noise=1.0),)
HEALTHY = (lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 3e-3), samples=256, noise=0.2),)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("memorises-noise", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("memorises-noise", build(seed))


def test_a_negative_loss_above_that_of_a_constant_is_not_fitted():
    """Densities: a network that is less sure than it could be has not memorized anything."""
    torch.manual_seed(0)
    x, y = torch.randn(256, 4), 1e-3 * torch.randn(256, 1)
    model = torch.nn.Linear(4, 2)
    torch.nn.init.constant_(model.bias, -9.0)

    def density(o, y):
        return 0.5 * (o[:, 1:] + (y - 1e-3 * o[:, :1]) ** 2 / o[:, 1:].exp()).mean()

    assert not alarms("memorises-noise", {"model": model, "data": (x, y), "validation": (x, y), "loss": density})


@pytest.mark.parametrize("related", [True, False])
def test_numbers_that_the_nearest_neighbors_tell_are_no_noise(related):
    """Columns far finer than the target varies: the network learns each sample by itself, and the data are right."""
    g = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(700, 2, generator=g) - 1
    y = (3 * x).sin().sum(1, keepdim=True)
    y = y if related else y[torch.randperm(700, generator=g)]
    fine = 60 * torch.randn(2, 64, generator=g)
    torch.manual_seed(0)

    class Waves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.f = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))

        def forward(self, x):
            return self.f((x @ fine).sin())

    model = Waves()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[:400]), y[:400]).backward()
        optimizer.step()
    given = {"model": model, "data": (x[:400], y[:400]), "validation": (x[400:], y[400:]), "steps": 300}
    found = alarms("memorises-noise", {**given, "loss": torch.nn.functional.mse_loss, "optimizer": optimizer})
    assert bool(found) != related
