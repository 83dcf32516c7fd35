"""Does training fail because it starts at its full learning rate without a warm-up?"""

from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.judging import alarms
from fixtures.trained import CLASSES, FEATURES, clouds
from theodolite import catalogue
from theodolite.core.run import RunMoment
from theodolite.evidence.trial import warming_up

WIDTH, DEPTH, GAIN, STEPS = 32, 9, 1.4, 200


def steep_at_first():
    """Drawn so large that its curvature is several times what the step allows, and falls while smaller steps are made."""
    sizes = [FEATURES, *[WIDTH] * (DEPTH - 1), CLASSES]
    layers = [nn.Linear(n, m) for n, m in pairwise(sizes)]
    for layer in layers:
        nn.init.normal_(layer.weight, 0.0, GAIN * (2 / layer.in_features) ** 0.5)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])


def run(seed, *, lr, warm):
    torch.manual_seed(seed)
    model = steep_at_first()
    x, y = clouds(seed, 1024, spread=0.8)
    optimizer = torch.optim.SGD(model.parameters(), lr)
    origin = {name: value.detach().clone() for name, value in model.state_dict().items()}
    history = []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = lr * min(1.0, (step + 1) / warm)
        rows = torch.randint(0, len(x), (64,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        value = cross_entropy(model(x[rows]), y[rows])
        value.backward()
        if step % 20 == 0 or step == STEPS - 1:
            history.append(RunMoment(step, loss=float(value.detach()), lr=optimizer.param_groups[0]["lr"]))
        optimizer.step()
    return {
        "model": model, "data": [(x[i : i + 64], y[i : i + 64]) for i in range(0, 1024, 64)], "loss": cross_entropy,
        "optimizer": optimizer, "validation": clouds(seed + 100, 256, spread=0.8), "origin": origin, "history": history,
    }  # fmt: skip


SICK = (lambda seed: run(seed, lr=0.1, warm=1),)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_run_that_a_warm_up_saves_is_found(seed):
    found = alarms("warm-up-missing", run(seed, lr=0.1, warm=1))
    assert found and found[0].suggested == {"warm_up_steps": 50}


@pytest.mark.parametrize("given", [{"lr": 1e-2, "warm": 1}, {"lr": 3e-2, "warm": 40}])
def test_runs_that_learn_are_left_alone(given):
    assert not alarms("warm-up-missing", run(0, **given))


def test_the_step_rises_and_then_is_the_users_own():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    warming_up(4, model, optimizer)
    seen = []
    optimizer.register_step_pre_hook(lambda o, *_: seen.append(o.param_groups[0]["lr"]))
    for _ in range(6):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert seen == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_it_is_one_of_the_catalogue():
    assert catalogue.ailment("warm-up-missing").interventions is not None
