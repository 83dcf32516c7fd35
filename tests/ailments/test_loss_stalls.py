"""Has the loss stopped high without any other explanation?"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from fixtures.judging import alarms, subject_of
from fixtures.trained import batches_of, clouds, network, patient, trained
from theodolite.ailments.loss_stalls import _still_falls
from theodolite.core.run import Run, RunMoment
from theodolite.core.subject import Subject
from theodolite.evidence.kernel_machine import attained
from theodolite.verbs.diagnosing import judgement_of


def _unlearnable(seed: int) -> Mapping[str, Any]:
    """Labels drawn at random and batches that never come twice."""
    return patient(seed, lambda own: torch.optim.SGD(own, 0.02), steps=60, samples=2048, noise=1.0)


def _scheduled(decay: float, lr: float = 1e-3, steps: int = 300) -> Any:
    def build(seed: int) -> Mapping[str, Any]:
        x, y = clouds(seed, 1024)
        model = network(seed)
        stepper = torch.optim.Adam(model.parameters(), lr)
        schedule = torch.optim.lr_scheduler.ExponentialLR(stepper, decay)
        held = clouds(seed + 1000, 512)
        return trained(model, stepper, batches_of(x, y, 32), validation=held, steps=steps, schedule=schedule.step)

    return build


def _dealt_out(seed: int) -> Mapping[str, Any]:
    """Labels that are dealt out anew in every batch, where some keep theirs: the held-out ones are right, and told a little."""
    x, y = clouds(seed, 512)
    model = network(seed)
    batches = [(a, b[torch.randperm(len(b))]) for _ in range(32) for a, b in batches_of(x, y, 64)]
    stepper = torch.optim.Adam(model.parameters(), 1e-4)
    return trained(model, stepper, batches, validation=clouds(seed + 1000, 512), steps=900)


SICK = (_unlearnable, _dealt_out, _scheduled(0.8), _scheduled(0.95))
HEALTHY = (
    _scheduled(0.98, lr=1e-2),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1)),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), noise=0.7),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("loss-stalls", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("loss-stalls", build(seed))


@pytest.mark.parametrize(("losses", "falls"), [((5.2, 3.13, 3.15), False), ((5.2, 3.5, 3.1), True), ((5.2, 3.1), True)])
def test_quarters_of_a_run_are_told_by_its_steps_however_few_its_looks_are(losses, falls):
    moments = tuple(RunMoment(step, loss=loss) for step, loss in zip((0, 210, 300), losses, strict=False))
    subject = Subject(nn.Linear(2, 1), run=Run(moments), checked=False)
    assert _still_falls(subject) is falls


class Pooled(nn.Module):
    """Tokens one by one, then their mean; with a vector for each place or without."""

    def __init__(self, placed):
        super().__init__()
        self.table, self.places = nn.Embedding(8, 16), nn.Parameter(torch.randn(4, 16)) if placed else None
        self.each, self.last = nn.Sequential(nn.Linear(16, 48), nn.ReLU()), nn.Linear(48, 8)

    def forward(self, x):
        h = self.table(x)
        return self.last(self.each(h if self.places is None else h + self.places).mean(1))


@pytest.mark.parametrize("placed", [True, False])
def test_a_model_that_knows_no_order_is_given_places(placed):
    torch.manual_seed(0)
    x = torch.randint(8, (800, 4))
    model = Pooled(placed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    known = {"data": (x, x[:, 0]), "loss": nn.functional.cross_entropy, "optimizer": optimizer}
    found = alarms("loss-stalls", {"model": model, **known})
    assert [one.suggested for one in found] == ([] if placed else [{"add": "places"}])


def _rare(weight, steps):
    """Overlapping classes, one in thirty of the rarer one; a loss may weight it."""
    g = torch.Generator().manual_seed(0)
    y = (torch.rand(3000, generator=g) < 0.03).long()
    x = torch.randn(3000, 20, generator=g) + y[:, None] * (torch.arange(20) < 4)
    torch.manual_seed(0)
    model, loss = nn.Linear(20, 2), nn.CrossEntropyLoss(torch.tensor([1.0, weight]))
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(x[:2000]), y[:2000]).backward()
        optimizer.step()
    moments = tuple(RunMoment(step, loss=0.5) for step in (0, steps // 3, 2 * steps // 3, steps))
    known = {"data": (x[:2000], y[:2000]), "validation": (x[2000:], y[2000:]), "optimizer": optimizer}
    return {"model": model, "loss": loss, "history": moments, "steps": steps, **known}


def test_weighted_classes_are_not_held_against_a_machine_that_asks_for_right_answers():
    assert not alarms("loss-stalls", _rare(10.0, 60))


def test_a_loop_that_adds_a_penalty_is_told_by_a_plain_copy():
    x, y = clouds(0, 1024)
    model, data = network(0), batches_of(x, y, 32)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    origin = {name: value.detach().clone() for name, value in model.state_dict().items()}
    for step in range(160):
        inputs, target = data[step % len(data)]
        optimizer.zero_grad()
        size = torch.stack([p.abs().sum() for p in model.parameters()]).sum()
        (nn.functional.cross_entropy(model(inputs), target) + 0.1 * size).backward()
        optimizer.step()
    known = {"data": data, "validation": clouds(1000, 512), "loss": nn.functional.cross_entropy, "optimizer": optimizer}
    moments = tuple(RunMoment(step, loss=1.6) for step in (0, 80, 160))
    subject = subject_of({"model": model, "origin": origin, "history": moments, "steps": 160, **known})
    (found,) = [one for one in judgement_of(subject, budget=4.0).findings if one.name == "loss-stalls"]
    assert "A plain copy" in found.says
    assert "shrinks the weights" in found.says
    assert "penalty" in found.remedy
    assert found.severity == "critical"


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_a_kernel_machine_has_no_middle_and_is_not_held_against_a_network_that_gives_its_input_back(noise):
    torch.manual_seed(0)
    y = torch.randn(600, 6) @ torch.randn(6, 24) / 6**0.5 + 0.1 * torch.randn(600, 24)
    x = y + noise * torch.randn(600, 24)
    model = nn.Linear(24, 24)
    one = Subject(
        model, data=(x[:400], y[:400]), validation=(y[400:], y[400:]), loss=nn.functional.mse_loss, checked=False
    )
    assert attained(one) is None
    assert attained(replace(one, data=(torch.randn(400, 24), y[:400]))) is not None
