"""A watch reads the optimizer: its edge, its last step, what it leaves out; and training is bit for bit as without it."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from fixtures.watched import OPTIMIZERS, Watch, classes, trained
from theodolite.verbs.watching.looks import PRECONDITIONED, SHARPNESS, TRUST


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_bit_identical_with_dropout_normalization_and_accumulation(name):
    (plain, moments, drawn, _), (watched, others, also, watch) = (
        trained(OPTIMIZERS[name], watching=w) for w in (False, True)
    )
    assert all(torch.equal(plain[key], watched[key]) for key in plain)
    same = [
        torch.equal(moments[i][key], others[i][key])
        for i in moments
        for key in moments[i]
        if isinstance(moments[i][key], torch.Tensor)
    ]
    assert all(same) and torch.equal(drawn, also)
    last = watch.records[-1]
    assert last.value(TRUST) is not None
    assert last.value(SHARPNESS if name in ("SGD", "momentum") else PRECONDITIONED) > 0
    assert last.facts["edge"] > 0 and not [n for n in last.notes if not n.startswith("stationarity")]


@pytest.mark.parametrize("bare", [False, True], ids=["the compiled model", "the model inside"])
def test_a_compiled_model_is_watched_and_trains_the_same(bare):
    seen, runs = torch._dynamo.utils.counters, []
    for watching in (False, True):
        torch._dynamo.reset()
        seen.clear()
        runs.append(trained(OPTIMIZERS["AdamW"], watching=watching, level="cheap", compiled=True, bare=bare))
        assert seen["stats"]["unique_graphs"] >= 1 and not seen["graph_break"]
    (plain, *_), (watched, *_, watch) = runs
    assert all(torch.equal(plain[key], watched[key]) for key in plain)
    assert watch.records[-1].value(TRUST) is not None


def test_the_last_step_is_measured_as_training_made_it():
    """Against the loss before and after the step and the gradient before it, taken by hand."""
    x, y = classes(96)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    x = x.double()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), every=3, level="cheap")
    for step in range(4):
        watch(step)
        before = {n: p.detach().clone() for n, p in model.named_parameters()}
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        slopes = {n: p.grad.clone() for n, p in model.named_parameters()}
        if step == 2:
            optimizer.step()
            break
        optimizer.step()
    predicted = sum(((p.detach() - before[n]) * slopes[n]).sum().item() for n, p in model.named_parameters())
    change = cross_entropy(model(x), y).item() - loss.item()
    facts = watch.look(3).facts
    assert facts["predicted"] == pytest.approx(predicted, rel=1e-6)
    assert facts["change"] == pytest.approx(change, rel=1e-6)
    assert watch.records[-1].value(TRUST) == pytest.approx(change / predicted, rel=1e-5)


class Partly(nn.Module):
    """A layer in use, one that the loss does not depend on, and a head."""

    def __init__(self):
        super().__init__()
        self.body, self.idle, self.head = nn.Linear(6, 8), nn.Linear(2, 2), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def heard_of(model, *optimizers, steps=2):
    """What a watch with the first optimizer is told, looked at after gradients were cleared."""
    x, y = classes(96)
    heard = []
    watch = Watch(
        model,
        optimizer=optimizers[0],
        probe=(x, y),
        level="cheap",
        every=1,
        on_finding=lambda step, finding: heard.append((step, finding)),
    )
    for step in range(steps):
        cross_entropy(model(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()
        model.zero_grad()
        watch(step)
    return heard


def test_what_no_step_changes_is_named():
    torch.manual_seed(0)
    model = Partly()
    ((step, finding),) = heard_of(model, torch.optim.SGD([*model.head.parameters(), *model.idle.parameters()], 0.1))
    assert (step, finding.name, finding.severity) == (0, "not-in-optimizer", "note")
    assert finding.suggested["add_to_optimizer"] == ["body.weight", "body.bias"]
    assert "body.bias (in no group), idle.weight, idle.bias (without a gradient)" in finding.says


def test_what_another_optimizer_holds_is_not_named():
    torch.manual_seed(0)
    model = Partly().requires_grad_(True)
    model.idle.requires_grad_(False)
    heard = heard_of(model, torch.optim.SGD(model.head.parameters(), 0.1), torch.optim.Adam(model.body.parameters()))
    assert not heard


def test_a_loss_that_is_meant_to_rise_is_no_alarm():
    torch.manual_seed(0)
    model = Partly().requires_grad_(True)
    model.idle.requires_grad_(False)
    assert not heard_of(model, torch.optim.SGD(model.parameters(), 0.5, maximize=True), steps=8)


def test_an_optimizer_that_tells_no_lr_is_watched():
    class Plain(torch.optim.Optimizer):
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.data.add_(p.grad, alpha=-0.1)

    x, y = classes(96)
    model = nn.Linear(6, 3)
    optimizer = Plain(model.parameters(), {})
    watch = Watch(model, optimizer=optimizer, probe=(x, y))
    cross_entropy(model(x), y).backward()
    optimizer.step()
    record = watch.look(1)
    assert record.lr is None and record.value(TRUST) > 0.5


def test_an_optimizer_without_a_known_edge_has_its_last_step_still():
    x, y = classes(96)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Rprop(model.parameters(), 1e-3)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), every=1)
    for step in range(3):
        watch(step)
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    record = watch.look(3)
    reading = next(reading for _, reading in record.readings if reading.quantity == SHARPNESS)
    assert reading.expected is None and "not known" in reading.meaning
    assert record.value(TRUST) is not None and math.isnan(record.facts["edge"])
    assert "Curvature was not compared with a limit" in watch.phase.reason


def test_a_large_model_is_read_in_parts_with_few_products():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 1100), nn.Tanh(), nn.Linear(1100, 1000), nn.Tanh(), nn.Linear(1000, 200))
    x, y = torch.randn(10, 6), torch.randn(10, 200)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), loss=mse_loss, every=2)
    for step in range(4):
        watch(step)
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()
    watch(4)
    last = watch.records[-1]
    assert not last.notes
    drift = next(reading for _, reading in last.readings if reading.quantity.startswith("drift of the tangent kernel"))
    assert "random projections" in drift.where and 0 < drift.measured < 1 and drift.stderr > 0
    travel = next(reading for _, reading in last.readings if reading.quantity.startswith("relative distance"))
    start = torch.cat([v.flatten() for v in watch._carried.origin.values()])
    now = torch.cat([p.detach().flatten() for p in model.parameters()])
    assert (
        abs(travel.measured - ((now - start).norm() / start.norm()).item()) < 4 * travel.stderr + 1e-4 * travel.measured
    )
    assert last.value(PRECONDITIONED) > 0
