"""Does the network fit its training data at the expense of held-out data?"""

import pytest
import torch

from fixtures.judging import alarms
from fixtures.trained import patient

SICK = (lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 3e-3), samples=96, steps=400, noise=0.3),)
HEALTHY = (
    lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-3)),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), noise=0.3),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("overfits", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("overfits", build(seed))


def test_a_loss_that_may_be_negative_is_not_judged_by_shares_of_it():
    """Counts: a few large ones make the loss of one part of the data that of another three times over."""
    torch.manual_seed(0)
    x = torch.randn(1200, 4)
    y = torch.poisson((0.6 * x[:, :1] + 0.8).exp())
    model = torch.nn.Linear(4, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.6, 0.0, 0.0, 0.0]]))
        model.bias.fill_(0.8)
    order = y[:, 0].argsort(descending=True)
    larger, smaller = order[::3], torch.cat([order[1::3], order[2::3]])
    larger = larger[: len(larger) // 2]
    given = {"model": model, "data": (x[larger], y[larger]), "validation": (x[smaller], y[smaller])}
    assert not alarms("overfits", {**given, "loss": torch.nn.functional.poisson_nll_loss})
    assert not alarms("memorises-noise", {**given, "loss": torch.nn.functional.poisson_nll_loss})
