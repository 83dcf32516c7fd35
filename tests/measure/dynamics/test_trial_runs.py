"""Trials on copies: they train as the original would, and leave everything of the user's bit for bit as it was."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.measure.dynamics import copied_training, trial_run

OPTIMIZERS = {
    "sgd": lambda own: torch.optim.SGD(own, 0.1),
    "momentum": lambda own: torch.optim.SGD(own, 0.05, momentum=0.9, nesterov=True, weight_decay=1e-4),
    "adam": lambda own: torch.optim.Adam(own, 1e-2),
    "amsgrad": lambda own: torch.optim.Adam(own, 1e-2, amsgrad=True),
    "adamw": lambda own: torch.optim.AdamW(own, 1e-2, weight_decay=0.1),
    "rmsprop": lambda own: torch.optim.RMSprop(own, 1e-3, momentum=0.5, centered=True),
}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))


def groups(model):
    return [{"params": model[0].parameters(), "lr": 1e-3}, {"params": [*model[1].parameters(), *model[4].parameters()]}]


def batches(count=12):
    g = torch.Generator().manual_seed(1)
    found = [torch.randn(16, 6, generator=g) for _ in range(count)]
    return [(x, x[:, :3].argmax(1)) for x in found]


def loss(model, batch):
    return cross_entropy(model(batch[0]), batch[1])


def stepped(model, optimizer, data, schedule=None):
    model.train()
    for batch in data:
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()


def everything(model, optimizer, schedule):
    return {
        "weights": {name: value.clone() for name, value in model.state_dict().items()},
        "optimizer": copy.deepcopy(optimizer.state_dict()),
        "schedule": copy.deepcopy(schedule.state_dict()),
        "gradients": [p.grad.clone() for p in model.parameters()],
        "modes": [module.training for module in model.modules()],
        "hooks": [list(module._forward_hooks) for module in model.modules()]
        + [list(optimizer._optimizer_step_post_hooks)],
        "drawn": torch.get_rng_state(),
    }


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


@pytest.mark.parametrize("split", [False, True], ids=["one group", "two groups"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_everything_is_left_bit_for_bit(name, split):
    model = network()
    optimizer = OPTIMIZERS[name](groups(model) if split else model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
    calls = []
    model.register_forward_hook(lambda *_: calls.append("forward"))
    stepped(model, optimizer, batches(5), schedule)
    optimizer.register_step_post_hook(lambda *_: calls.append("step"))
    before, own = everything(model, optimizer, schedule), [p.grad for p in model.parameters()]
    calls.clear()
    found = trial_run(model, optimizer, loss, training=batches(), held_out=batches(3))
    assert same(before, everything(model, optimizer, schedule))
    assert all(p.grad is gradient for p, gradient in zip(model.parameters(), own, strict=True))
    assert "step" not in calls and len(found.losses) == 12


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_copy_goes_on_as_the_original_would_have(name):
    """State, parameter groups and weights are all there: without dropout the copy's steps are the original's, bit for bit."""
    model = network()
    model[3].p = 0.0
    optimizer = OPTIMIZERS[name](groups(model))
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    stepped(model, optimizer, batches(4), schedule)
    copied, stepper = copied_training(model, optimizer)
    assert not {id(p) for p in copied.parameters()} & {id(p) for p in model.parameters()}
    stepped(copied, stepper, batches())
    untouched = copy.deepcopy(model.state_dict())
    assert not same(dict(untouched), dict(copied.state_dict()))
    stepped(model, optimizer, batches())
    assert same(dict(model.state_dict()), dict(copied.state_dict()))


def test_the_change_is_made_to_the_copy_alone_and_is_what_trains():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def smaller(copied, stepper):
        assert copied is not model and stepper is not optimizer
        stepper.param_groups[0]["lr"] = 0.0

    found = trial_run(model, optimizer, loss, training=batches(), held_out=batches(3), change=smaller)
    assert found.after == found.before and found.fell == 0 and found.certain == 0
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_trial_that_learns_falls_and_one_that_blows_up_ends_in_infinity():
    model = network()
    cool = trial_run(
        model, torch.optim.Adam(model.parameters(), 1e-2), loss, training=5 * batches(), held_out=batches(4)
    )
    assert cool.after < 0.7 * cool.before and cool.certain > 3
    assert sum(cool.ends) / len(cool.ends) == pytest.approx(cool.after)
    linear = nn.Linear(6, 3)

    def squares(model, batch):
        return model(batch[0]).square().mean()

    hot = trial_run(
        linear, torch.optim.SGD(linear.parameters(), 1e30), squares, training=batches(), held_out=batches(4)
    )
    assert hot.after == math.inf and hot.stderr == 0 and len(hot.losses) < 12


def test_trials_are_reproducible_and_take_no_longer_than_told():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    runs = [trial_run(model, optimizer, loss, training=batches(), held_out=batches(3)) for _ in range(2)]
    assert runs[0].losses == runs[1].losses and runs[0].after == runs[1].after
    short = trial_run(model, optimizer, loss, training=batches(), held_out=batches(3), most_seconds=0.0)
    assert len(short.losses) == 1


def test_parameters_that_no_group_holds_gather_no_gradient_in_the_copy():
    model = network()
    optimizer = torch.optim.SGD(model[4].parameters(), 0.1)
    seen = []

    def added(copied, stepper):
        seen.append(copied)

    trial_run(model, optimizer, loss, training=batches(2), held_out=batches(1), change=added)
    once = seen[0][0].weight.grad.norm()
    trial_run(model, optimizer, loss, training=10 * batches(2), held_out=batches(1), change=added)
    assert seen[1][0].weight.grad.norm() < 5 * once


def test_an_optimizer_with_members_of_its_own_is_copied_whole():
    class Scaled(torch.optim.SGD):
        def __init__(self, own, lr, scale):
            super().__init__(own, lr)
            self.scale = scale

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad.mul_(self.scale)
            return super().step(closure)

    model = network()
    found = trial_run(model, Scaled(model.parameters(), 0.1, 0.5), loss, training=batches(), held_out=batches(3))
    assert len(found.losses) == 12 and math.isfinite(found.after)
