"""A spike that was planted is found at the next look, and its cause is the one of three that was planted."""

import logging

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.watched import Watch

AT, EVERY, STEPS = 70, 20, 120


def trained(plant: str):
    draw = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    centers = 0.7 * torch.randn(4, 12, generator=draw)
    labels = torch.randint(0, 4, (800,), generator=draw)
    x = centers[labels] + torch.randn(800, 12, generator=draw)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    watch = Watch(
        model, probe=(x[:64], labels[:64]), loss=cross_entropy, optimizer=optimizer, every=EVERY, level="cheap"
    )
    for step in range(STEPS):
        rows = torch.randint(0, 800, (32,), generator=draw)
        inputs, targets = x[rows], labels[rows]
        if plant == "batch" and step == AT:
            inputs, targets = 3 * torch.randn(32, 12, generator=draw), torch.randint(0, 4, (32,), generator=draw)
        if plant == "weights" and step == AT:
            model[2].weight.data = 10 * model[2].weight.data
        loss = cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.param_groups[0]["lr"] = 0.6 if plant == "step" and step == AT else 0.02
        optimizer.step()
        watch(step)
    return watch, [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize(
    ("plant", "says"), [("batch", "batch of that step is unusual"), ("step", "step there was"), ("weights", "2.weight")]
)
def test_a_planted_spike_is_named_by_its_cause(plant, says, caplog):
    with caplog.at_level(logging.WARNING, logger="theodolite"):
        watch, _ = trained(plant)
    found = next(f for f in watch.findings if f.name == "loss-spikes")
    harmless = plant == "batch"  # the loss of other samples does not jump with it
    assert found.severity == ("note" if harmless else "warning") and found.where == f"step {AT}" and says in found.says
    first = next(record for record in watch.records if any("loss spikes" in line for line in record.alarms))
    assert first.step <= AT + EVERY
    assert harmless or any("loss spikes" in line for line in caplog.messages)
    assert plant != "weights" or "loss-spikes" in [f.name for f in watch.diagnosed(2.0).findings]


def test_a_training_without_a_spike_has_none():
    watch, _ = trained("")
    assert "loss spikes" not in watch.silent
    assert [f.name for f in watch.findings] == []


def test_a_loss_that_is_told_is_used_where_targets_are_not_seen():
    from theodolite.verbs.watching.training_hooks.step_trace import StepTrace

    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trace = StepTrace(model, optimizer)
    for step in range(80):
        if step == 70:
            with torch.no_grad():
                model.weight.mul_(5)
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        trace.note(torch.tensor(9.0 if step == 70 else 4.0 / (1 + step)))
        optimizer.step()
    trace.settle(lambda spike: spike)
    assert [(spike.cause, spike.step, spike.where) for spike in trace.spikes] == [("weights", 70, "weight")]
