"""A defect of a watch is a line of the log; the user's training goes on as it would have."""

import math

import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.verbs.watching.training_hooks import harmless_hooks
from theodolite.verbs.watching.training_hooks.optimizer_events import OptimizerEvents
from theodolite.verbs.watching.training_hooks.silent_errors import SilentErrors
from theodolite.verbs.watching.training_hooks.step_trace import StepTrace

HOOKS = ((SilentErrors, "_arrived"), (StepTrace, "_read"), (OptimizerEvents, "_arrived"))


def trained(watching):
    torch.manual_seed(0)
    x, y = torch.randn(64, 4), torch.randint(0, 3, (64,))
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = None
    if watching:
        watch = th.Watch(
            model,
            optimizer=optimizer,
            probe=(x, y),
            loss=nn.functional.cross_entropy,
            every=10,
            level="cheap",
            budget=math.inf,
        )
    for step in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if watch is not None:
            watch(step)
    return model, watch


@pytest.mark.parametrize(("kind", "method"), HOOKS, ids=[kind.__name__ for kind, _ in HOOKS])
def test_a_hook_that_raises_leaves_training_as_it_is(kind, method, monkeypatch, caplog):
    def broken(*_):
        raise TypeError("planted")

    # where the method is a hook itself it is guarded as the others are
    hook = harmless_hooks.harmless(broken) if method == "_arrived" else broken
    monkeypatch.setattr(kind, method, hook)
    monkeypatch.setattr(harmless_hooks, "isolated", True)
    bare, _ = trained(watching=False)
    seen, watch = trained(watching=True)
    assert all(torch.equal(a, b) for a, b in zip(bare.parameters(), seen.parameters(), strict=True))
    assert len(watch.records) == 4
    told = [record.message for record in caplog.records if "planted" in record.message]
    assert len(told) == 1 and kind.__name__ in told[0]


def test_in_tests_it_raises(monkeypatch):
    monkeypatch.setattr(SilentErrors, "_arrived", harmless_hooks.harmless(lambda self, parameter: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        trained(watching=True)
