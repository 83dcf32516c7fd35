"""Does training fail because it starts at its full learning rate without a warm-up?"""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.judging import alarms
from fixtures.trained import CLASSES, FEATURES, clouds
from theodolite import catalogue
from theodolite.ailments.warm_up_missing import warming_up
from theodolite.core.run import RunMoment

WIDTH, STEPS = 32, 200


class Post(nn.Module):
    """Residual blocks with the normalization behind them, the last of which a first large step can switch off."""

    def __init__(self, depth):
        super().__init__()
        self.first, self.head = nn.Linear(FEATURES, WIDTH), nn.Linear(WIDTH, CLASSES)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(depth))

    def forward(self, x):
        x = self.first(x)
        for block, norm in zip(self.blocks, self.norms, strict=True):
            x = norm(x + block(x))
        return self.head(x)


def run(seed, *, lr, warm):
    torch.manual_seed(seed)
    model = Post(12)
    x, y = clouds(seed, 1024, spread=0.8)
    optimizer = torch.optim.Adam(model.parameters(), lr)
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


SICK = (lambda seed: run(seed, lr=1e-2, warm=1),)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_that_a_warm_up_saves_is_found(seed):
    found = alarms("warm-up-missing", run(seed, lr=1e-2, warm=1))
    assert found and found[0].suggested == {"warm_up_steps": 19}


@pytest.mark.parametrize("given", [{"lr": 1e-3, "warm": 1}, {"lr": 3e-3, "warm": 40}])
def test_runs_that_learn_are_left_alone(given):
    assert not alarms("warm-up-missing", run(0, **given))


def test_the_step_rises_and_then_is_the_users_own():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    warming_up(4)(model, optimizer)
    seen = []
    optimizer.register_step_pre_hook(lambda o, *_: seen.append(o.param_groups[0]["lr"]))
    for _ in range(6):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert seen == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_it_is_one_of_the_catalogue():
    assert catalogue.ailment("warm-up-missing").interventions is not None
