"""The phase that a watch tells, beside what every step of the same run shows; and the loss between looks."""

import importlib.util
import math
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from fixtures.watched import Watch
from theodolite.verbs.watching.training_hooks.loss_between_looks import LossBetweenLooks

PATH = Path(__file__).parents[4] / "benchmarks" / "watch_phases.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("watch_phases", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["watch_phases"] = module
    spec.loader.exec_module(module)
    tried, threads = module.watched_run.LARGEST_TRIED, torch.get_num_threads()
    yield module
    module.watched_run.LARGEST_TRIED = tried
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("phase", "number"),
    [("lazy", 1), ("stable", 1), ("edge", 4), ("catapult", 42), ("flat", 0), ("divergent", 0), ("dead", 0)],
)
def test_the_phase_of_a_run_is_that_of_its_making(benchmark, phase, number):
    _, _, _, words, name, reason = benchmark.case(phase, number)
    assert benchmark.right(phase, name), f"{words}: {name}: {reason}"


def test_after_a_step_beyond_the_edge_the_loss_is_followed():
    """A quadratic one beyond its edge: up to step 19 the loss grows, and no look sees it."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    x, y = torch.ones(4, 1), torch.zeros(4, 1)  # samples that none could tell apart: the network is not dead for that
    optimizer = torch.optim.SGD(model.parameters(), 1.05)  # curvature 2, edge 2 / 1.05
    watch = Watch(model, optimizer=optimizer, probe=(x, y), loss=mse_loss, every=100)
    for step in range(101):
        watch(step)
        if step == 20:
            optimizer.param_groups[0]["lr"] = 0.1
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()
    assert [record.step for record in watch.records] == [0, 100]
    assert watch.records[-1].facts["peak_loss"] == pytest.approx(1.1 ** (2 * 19), rel=1e-4)
    assert watch.phase.name == "catapult"


def test_glances_are_few_and_end():
    between = LossBetweenLooks()
    between.begin(100, 1.0)
    seen = []
    for step in range(101, 201):
        if between.due(step):
            seen.append(step - 100)
            between.saw(step, 0.2 if step == 104 else 0.1 if step < 109 else 0.6)
    assert seen == [1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94]
    assert between.facts() == {"peak_loss": 0.6, "bounce": pytest.approx(6.0)}
    between.saw(201, math.inf)
    assert not between.due(10_000)
    between.end()
    assert between.facts() == {}
