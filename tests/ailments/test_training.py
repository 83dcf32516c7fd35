"""Ailments of training: found in the sick examples, silent on their healthy look-alikes, and nothing of the user's is changed."""

import copy
import importlib

import pytest
import torch

from theodolite.ailments._common.chart import Chart
from theodolite.core.ailment import Ailment

NAMES = (
    "step_too_large",
    "step_too_small",
    "not_in_optimizer",
    "gradient_accumulates",
    "batch_noise",
    "loss_stalls",
    "trained_too_short",
    "overfits",
    "memorises_noise",
    "precision_too_low",
    "statistics_differ",
    "regularised_too_hard",
)


def ailment_of(name: str) -> Ailment:
    return importlib.import_module(f"theodolite.ailments.{name}").ailment


def cases(kind: str):
    return [
        pytest.param(name, build, id=f"{name}-{i}")
        for name in NAMES
        for i, build in enumerate(ailment_of(name).examples[kind])
    ]


def judged(name: str, chart: Chart):
    ailment = ailment_of(name)
    return list(ailment.judge(chart)) if all(chart.has(need) for need in ailment.needs) else []


def state_of(chart: Chart):
    chosen = copy.deepcopy((chart.model.state_dict(), chart.optimizer.state_dict()))
    modes = [module.training for module in chart.model.modules()]
    gradients = [None if p.grad is None else p.grad.clone() for p in chart.model.parameters()]
    return chosen, modes, gradients, torch.get_rng_state()


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "build"), cases("sick"))
def test_the_sick_are_found_and_nothing_of_the_users_is_changed(name, build, seed):
    chart = Chart(**build(seed))
    before = state_of(chart)
    found = judged(name, chart)
    assert found and found[0].severity != "note", found
    assert found[0].says and found[0].remedy
    assert same(before, state_of(chart))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("name", "build"), cases("healthy"))
def test_the_healthy_are_left_alone(name, build, seed):
    assert all(finding.severity == "note" for finding in judged(name, Chart(**build(seed))))
