"""Are layers frozen that were never trained?"""

import pytest
import torch
from torch import nn

from fixtures.judging import alarms, judged
from fixtures.trained import CLASSES, batches_of, clouds, network, trained


def frozen(seed, part, *, before=0):
    """A network of which a part is frozen, as drawn or after some steps of training of all of it."""
    model = network(seed)
    x, y = clouds(seed, 512)
    data, held = batches_of(x, y, 32), clouds(seed + 100, 256)
    if before:
        trained(model, torch.optim.Adam(model.parameters(), 3e-3), data, validation=held, steps=before)
        model[-1] = nn.Linear(48, CLASSES)
    for index in part:
        model[index].requires_grad_(False)
    own = [p for p in model.parameters() if p.requires_grad]
    return trained(model, torch.optim.Adam(own, 3e-3), data, validation=held, steps=200)


SICK = (lambda seed: frozen(seed, (2, 4)), lambda seed: frozen(seed, (4,), before=0))
HEALTHY = (lambda seed: frozen(seed, ()), lambda seed: frozen(seed, (0, 2), before=300))


@pytest.mark.parametrize("seed", [0, 1])
def test_half_a_network_frozen_as_drawn_is_found(seed):
    found = alarms("frozen-by-mistake", SICK[0](seed))
    assert found and found[0].where == "2.weight"
    assert set(found[0].suggested["unfreeze"]) == {"2.weight", "2.bias", "4.weight", "4.bias"}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_new_head_without_gradient_is_told(seed):
    found = judged("frozen-by-mistake", SICK[1](seed))
    assert found and found[0].where == "4.weight"


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("frozen-by-mistake", build(seed))


def convolutions(seed, part, *, before=60):
    """A small network of images that was trained for a while, then given a head for other classes; a part is frozen."""
    torch.manual_seed(seed)
    layers = [nn.Conv2d(1, 12, 3, bias=False), nn.BatchNorm2d(12), nn.ReLU()]
    layers += [nn.Conv2d(12, 12, 3, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.Flatten(), nn.AdaptiveAvgPool1d(12)]
    model = nn.Sequential(*layers, nn.Linear(12, 4))
    y = torch.randint(4, (512,))
    x = torch.randn(512, 1, 8, 8) + torch.randn(4, 1, 8, 8)[y]
    data, held = batches_of(x[:384], y[:384], 32), (x[384:], y[384:])
    if before:
        trained(model, torch.optim.Adam(model.parameters(), 1e-2), data, validation=held, steps=before)
        model[-1] = nn.Linear(12, 4)
    for index in part:
        model[index].requires_grad_(False)
    own = [p for p in model.parameters() if p.requires_grad]
    return trained(model, torch.optim.Adam(own, 3e-3), data, validation=held, steps=60)


def test_a_normalization_that_has_moved_says_that_what_is_frozen_was_trained():
    assert not judged("frozen-by-mistake", convolutions(0, (0, 1, 3, 4)))
    assert judged("frozen-by-mistake", convolutions(0, (0, 1, 3, 4), before=0))


def test_a_new_head_of_a_few_entries_is_told_by_each_of_them():
    (found,) = judged("frozen-by-mistake", convolutions(0, (8,)))[:1]
    assert found.where == "8.weight"
    known = convolutions(0, ())
    known["model"][-1].requires_grad_(False)  # after it was trained
    assert not judged("frozen-by-mistake", known)


def test_gradients_are_asked_for_and_not_left_on():
    given = SICK[0](0)
    alarms("frozen-by-mistake", given)
    assert [p.requires_grad for p in given["model"].parameters()] == [True, True, False, False, False, False]
