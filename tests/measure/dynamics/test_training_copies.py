"""Copies of a training: they train as the original would, and leave everything of the user's bit for bit as it was."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.measure.dynamics import copied_training

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
    copied, stepper = copied_training(model, optimizer)
    drawn = torch.get_rng_state()
    stepped(copied, stepper, batches())
    torch.set_rng_state(drawn)  # dropout of the copy draws
    assert same(before, everything(model, optimizer, schedule))
    assert all(p.grad is gradient for p, gradient in zip(model.parameters(), own, strict=True))
    assert "step" not in calls


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
    model[3].p = 0.0
    optimizer = Scaled(model.parameters(), 0.1, 0.5)
    copied, stepper = copied_training(model, optimizer)
    assert stepper.scale == 0.5
    stepped(copied, stepper, batches())
    stepped(model, optimizer, batches())
    assert same(dict(model.state_dict()), dict(copied.state_dict()))
