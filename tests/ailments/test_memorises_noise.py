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
