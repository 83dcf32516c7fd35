"""Are some classes so rare that the network gives them up?"""

import pytest
import torch
from torch import Tensor, nn

from fixtures.judging import alarms


def _case(seed: int, rare: float, *, separable: bool, steps: int = 80, weight: float = 1.0) -> dict[str, object]:
    torch.manual_seed(seed)
    loss = nn.CrossEntropyLoss(torch.tensor([1.0, weight]))

    def draw(n: int) -> tuple[Tensor, Tensor]:
        y = (torch.rand(n) < rare).long()
        x = torch.randn(n, 6)
        x[:, 0] += y * (6.0 if separable else 0.7)
        return x, y

    data, validation = draw(1200), draw(1200)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(data[0]), data[1]).backward()
        optimizer.step()
    return {"model": model, "data": data, "validation": validation, "loss": loss, "optimizer": optimizer}


def rare_class_given_up(seed: int) -> dict[str, object]:
    return _case(seed, 0.04, separable=False)


def rare_class_learned(seed: int) -> dict[str, object]:
    return _case(seed, 0.05, separable=True, steps=200)


def balanced(seed: int) -> dict[str, object]:
    return _case(seed, 0.5, separable=False)


def not_yet_trained(seed: int) -> dict[str, object]:
    return _case(seed, 0.05, separable=False, steps=0)


def weighted_a_thousandfold(seed: int) -> dict[str, object]:
    return _case(seed, 0.2, separable=False, weight=1000.0)


def weighted_as_rare(seed: int) -> dict[str, object]:
    return _case(seed, 0.05, separable=False, weight=19.0)


def weighted_and_learned(seed: int) -> dict[str, object]:
    return _case(seed, 0.2, separable=True, steps=200, weight=1000.0)


SICK = (rare_class_given_up, weighted_a_thousandfold)
HEALTHY = (rare_class_learned, balanced, not_yet_trained, weighted_as_rare, weighted_and_learned)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("classes-unbalanced", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("classes-unbalanced", build(seed))


class Decay(nn.Module):
    """What is left of du/dt + u = 0, whose solution begins at 1."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, t: Tensor) -> Tensor:
        with torch.enable_grad():
            t = t.detach().requires_grad_(True)
            u = 1 + t * self.inner(t)
            (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
        return slope + u


@pytest.mark.parametrize(("model", "found"), [(Decay, False), (lambda: nn.Linear(1, 1), True)])
def test_targets_of_zero_are_a_fault_unless_a_residual_is_asked_for(model, found):
    torch.manual_seed(0)
    own = model()
    optimizer = torch.optim.Adam(own.parameters(), lr=1e-3)
    data = (torch.rand(256, 1), torch.zeros(256, 1))
    case = {"model": own, "data": data, "loss": nn.functional.mse_loss, "optimizer": optimizer}
    assert bool(alarms("classes-unbalanced", case)) is found
