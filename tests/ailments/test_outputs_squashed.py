"""Does the last activation keep the outputs from reaching what the loss asks for?"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import theodolite as th
from fixtures.fresh import digits_like, number_like, stack
from fixtures.judging import alarms
from fixtures.trained import batches_of, clouds, network, trained


def _softmax(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: nn.Sequential(stack(1), nn.Softmax(-1)))


def _single(seed: int) -> dict[str, object]:
    """A softmax of one number is always 1."""
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Softmax(-1)))
    return {**given, "data": [(x, (y > 0).float()) for x, y in given["data"]], "loss": F.binary_cross_entropy}


def _single_clamped(seed: int) -> dict[str, object]:
    """The same under a loss that cuts probabilities off, so that it has no slope at 1."""

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy(output.clamp(1e-7, 1 - 1e-7), target)

    return {**_single(seed), "loss": loss}


def _far(seed: int) -> dict[str, object]:
    """Prices of some hundreds, asked of a sigmoid."""
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid()))
    return {**given, "data": [(x, 150 + 70 * y) for x, y in given["data"]]}


def _relu(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: nn.Sequential(stack(1), nn.ReLU()), lr=1e-2)


def _tanh(seed: int) -> dict[str, object]:
    return number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh()))


def _positive(seed: int) -> dict[str, object]:
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.ReLU()))
    return {**given, "data": [(x, y.abs()) for x, y in given["data"]]}


def _log_softmax(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: nn.Sequential(stack(1), nn.LogSoftmax(-1)), loss=F.nll_loss)


def _within(seed: int) -> dict[str, object]:
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh()))
    return {**given, "data": [(x, 0.8 * torch.tanh(y)) for x, y in given["data"]]}


def _sigmoid(seed: int) -> dict[str, object]:
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid()))
    return {**given, "data": [(x, (y > 0).float()) for x, y in given["data"]], "loss": F.binary_cross_entropy}


def _dead_sigmoid(seed: int) -> dict[str, object]:
    """The right function, stuck at 0 and 1: the range is not at fault."""
    given = _sigmoid(seed)
    torch.nn.init.constant_(given["model"][2].bias, 500.0)
    return given


SICK = (_softmax, _relu, _tanh, _single, _single_clamped, _far)
HEALTHY = (_log_softmax, _within, _sigmoid, _positive, _dead_sigmoid)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("outputs-squashed", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("outputs-squashed", build(seed))


def test_answers_that_are_compared_with_each_other_may_be_normalized():
    class Sphere(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.normalize(self.linear(x), dim=-1)

    def compared(z: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(z[:, 0] @ z[:, 1].T / 0.5, torch.arange(len(z)))

    torch.manual_seed(0)
    x = torch.randn(256, 1, 8) + 0.3 * torch.randn(256, 2, 8)
    given = {"model": Sphere(), "data": (x, torch.zeros(256, dtype=torch.long)), "loss": compared}
    assert not alarms("outputs-squashed", given)
    assert not alarms("classes-unbalanced", given)


class Detector(nn.Module):
    """At each cell whether something is there, and where: the first, as logits or as a probability."""

    def __init__(self, probability):
        super().__init__()
        self.probability, self.last = probability, nn.Conv2d(1, 3, 3, padding=1)

    def forward(self, x):
        out = self.last(x)
        return torch.cat([out[:, :1].sigmoid(), out[:, 1:]], 1) if self.probability else out


@pytest.mark.parametrize("probability", [True, False])
def test_a_function_on_some_of_the_outputs(probability):
    def loss(out, y):
        there = F.binary_cross_entropy_with_logits(out[:, 0], y[:, 0])
        return there + ((out[:, 1:] - y[:, 1:]).square().mean(1) * y[:, 0]).mean()

    torch.manual_seed(0)
    y = torch.cat([(torch.rand(128, 1, 5, 5) < 0.2).float(), torch.randn(128, 2, 5, 5)], 1)
    given = {"model": Detector(probability), "data": (torch.randn(128, 1, 5, 5), y), "loss": loss}
    assert bool(alarms("outputs-squashed", given)) == probability


def test_a_run_that_learned_most_is_told_what_a_copy_without_the_function_reaches_and_no_larger_step():
    """Behind a sigmoid ten times the step helps, too; without it that step would be far too large."""
    x, y = clouds(0, 1024, spread=1.2)
    model = nn.Sequential(*network(0), nn.Sigmoid())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run = trained(model, optimizer, batches_of(x, y, 32), validation=clouds(1, 512, spread=1.2), steps=300)
    known = {name: run[name] for name in ("data", "loss", "optimizer", "validation", "origin")}
    found = th.diagnose(model, **known).findings
    assert [f.name for f in found if f.severity != "note"] == ["outputs-squashed"]
    assert "Tried on a copy" in found[0].says
