"""Does the loss jump, and why?"""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from fixtures.judging import alarms
from fixtures.trained import clouds, network
from theodolite import catalogue
from theodolite.core.run import Run
from theodolite.core.subject import Subject

AT, STEPS = 60, 96


def run(seed, spoil):
    """A watched training, in which something happens at one step."""
    torch.manual_seed(seed)
    model: nn.Module = network(seed)
    x, y = clouds(seed, 1024)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watch = th.Watch(model, optimizer=optimizer, probe=(x[:128], y[:128]), loss=cross_entropy, every=32, level="cheap")
    for step in range(STEPS):
        rows = torch.randint(0, len(x), (64,), generator=torch.Generator().manual_seed(step))
        inputs, targets = x[rows], y[rows]
        if step == AT:
            spoil(model, optimizer)
        optimizer.zero_grad()
        cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.1
        watch(step)
    return Subject(model, checked=False, run=Run(silent=watch.silent))


@torch.no_grad()
def _scaled(model, optimizer):
    next(p for p in model.parameters() if p.ndim > 1).mul_(30.0)


def _hot(model, optimizer):
    optimizer.param_groups[0]["lr"] = 300.0


SICK = (lambda seed: run(seed, _hot), lambda seed: run(seed, _scaled))
CAUSES = ("times as long as usual", "between two steps")


@pytest.mark.parametrize(("build", "cause"), [*zip(SICK, CAUSES, strict=True)])
def test_a_jump_is_told_with_its_cause(build, cause):
    (found,) = alarms("loss-spikes", build(0))
    assert cause in found.says and f"step {AT}" in found.where


def test_a_run_without_a_jump_is_left_alone():
    assert not alarms("loss-spikes", run(0, lambda *_: None))


@pytest.mark.parametrize(("after", "severity"), [("41", "note"), ("42", "note"), ("57", "warning")])
def test_an_unusual_batch_is_a_note_where_a_step_on_it_costs_little(after, severity):
    words = ("batch", "60", "", "40", "100", "nan", "0.1", "0.1", "sure", "100", f"41 {after} 41 0")
    (found,) = catalogue.ailment("loss-spikes").while_training(Run(silent={"loss spikes": words}))
    assert found.severity == severity


@pytest.mark.parametrize(("cause", "made_up", "alarmed"), [("step", 1, 0), ("step", 0, 1), ("weights", 1, 1)])
def test_a_long_step_that_was_made_up_for_is_a_note(cause, made_up, alarmed):
    x = torch.linspace(-1, 1, 64)[:, None]
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, float(made_up))
    nn.init.zeros_(model.bias)
    words = (cause, "60", "0", "0.01", "0.3", "32", "0.1", "0.1", "sure", "", "")
    known = {
        "data": (x, x),
        "loss": nn.functional.mse_loss,
        "checked": False,
        "run": Run(silent={"loss spikes": words}),
    }
    assert len(alarms("loss-spikes", Subject(model, **known))) == alarmed
