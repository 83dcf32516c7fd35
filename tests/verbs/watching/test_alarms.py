"""Alarms while a run goes: early in hot runs, none in healthy and cold ones; and phases on many runs."""

import importlib.util
import logging
import math
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.core.ailment import Finding
from theodolite.core.run import Run
from theodolite.theory.dynamics import Moment, training_phase
from theodolite.verbs.diagnosing import alarms_of
from theodolite.verbs.diagnosis import Diagnosis
from theodolite.verbs.watching.alarms import Alarms, Stopped, line_of
from theodolite.verbs.watching.history import dashboard_of, findings_began
from theodolite.verbs.watching.records import Record, last_standing
from theodolite.verbs.watching.watched_run import moment_of

PATH = Path(__file__).parents[3] / "benchmarks" / "watch_alarms.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("watch_alarms", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["watch_alarms"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("model", "optimizer"), [("MLP", "SGD"), ("CNN, BatchNorm", "AdamW"), ("transformer", "momentum")]
)
def test_the_alarm_of_a_hot_run_comes_in_time_and_others_have_none(benchmark, model, optimizer):
    (first, finding), doubled, *_ = benchmark.run(model, optimizer, 1000, 0)
    assert first <= doubled < math.inf and finding.name == "step-too-large" and finding.severity == "critical"
    assert finding.suggested["lr"] < 1000 * benchmark.RIGHT.get((model, optimizer), 3e-3)
    for factor in (1, 0.01):
        (first, _), *_ = benchmark.run(model, optimizer, factor, 0)
        assert first == math.inf


def hot_watch(**options):
    torch.manual_seed(0)
    x, y = torch.randn(64, 6), torch.arange(64) % 3
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), 50.0)
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), every=2, level="cheap", budget=math.inf, **options)
    for step in range(20):
        watch(step)
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return watch


def test_a_finding_is_one_line_in_the_log_and_told_once(caplog, tmp_path):
    heard = []
    with caplog.at_level(logging.INFO, logger="theodolite"):
        watch = hot_watch(
            on_finding=lambda step, finding: heard.append((step, finding)), page_at=tmp_path / "live.html"
        )
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "theodolite" and "no loss" not in record.getMessage()
    ]
    assert [line_of(step, finding) for step, finding in heard] == lines == watch.document()["alarms"]
    assert len(lines) == 1 and lines[0].startswith("step 2: step too large: ") and "; lr at most " in lines[0]
    page = (tmp_path / "live.html").read_text()
    assert '<meta http-equiv="refresh"' in page and "step too large" in page
    assert "<script" not in page and lines[0][:40] in page


def test_a_finding_is_a_mark_at_the_step_at_which_it_began():
    watch = hot_watch()
    began = findings_began(watch.records)
    assert began["step-too-large"][0] == 2 and watch.records[-1].step == 18
    standing = Diagnosis(
        "", (*watch.findings, Finding(name="batch-noise", severity="warning", says="seen.", remedy=""))
    )
    board = dashboard_of(watch.records, standing)
    for words, at in (("step too large", 2.0), ("batch noise", 18.0)):  # told by no look: known since the last
        assert [step for step, said, _ in board.marks if words in said] == [at]
    picture = board.svg()
    assert "▲ step 2: step too large<" in picture and "batch noise ▲<" in picture


def test_training_stops_where_it_is_told_to():
    with pytest.raises(Stopped, match="step 2: step too large") as caught:
        hot_watch(stop_on="critical")
    assert caught.value.finding.suggested["lr"] < 50


def findings_of_run(records, events):
    return alarms_of(Run(tuple(map(moment_of, [*records[:-1], *last_standing(records)])), events))


def records(losses, **facts):
    return [
        Record(step, lr=0.1, facts={"loss": loss, "step_loss": loss, **{k: v[step] for k, v in facts.items()}})
        for step, loss in enumerate(losses)
    ]


def test_a_severity_to_stop_on_that_is_none_is_refused_at_once():
    with pytest.raises(ValueError, match="one of critical, warning, note"):
        Alarms(stop_on="bad")


def test_noise_near_a_minimum_is_no_alarm_and_a_loss_that_comes_back_is_a_warning():
    calm = records(
        [2.0, 0.1, 0.02, 0.03], trust=[1, 1, -0.7, -0.5], predicted=[0, -0.1, -1e-3, -1e-3], change=[0, 0, 0, 0]
    )
    assert not findings_of_run(calm, events={})
    back = records(
        [2.0, 0.1, 0.02, 1.1], trust=[1, 1, -0.7, -0.5], predicted=[0, -0.1, -1e-3, -1], change=[0, 0, 0, 0.5]
    )
    (finding,) = findings_of_run(back, events={})
    assert (finding.name, finding.severity) == ("step-too-large", "warning")


def test_overfitting_kept_gradients_and_dead_networks_are_told():
    held = [2.0, 1.5, 1.2, 1.1, 1.2, 1.4, 1.7, 2.0]
    fit = records([2.0, 1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02], validation_loss=held)
    (finding,) = findings_of_run(fit, events={})
    assert finding.name == "overfits" and finding.suggested == {"stop_at": 3}
    assert not findings_of_run(records([2.0, 1.0, 0.5], validation_loss=[2.0, 1.2, 1.3]), events={})
    (kept,) = findings_of_run(records([1.0, 0.9]), events={"gradient kept": 9, "optimizer steps": 10})
    assert kept.suggested == {"zero_grad": True}
    (dead,) = findings_of_run(records([1.0, 1.0], gradient=[1.0, 0.0]), events={})
    assert dead.severity == "critical" and dead.name == "units-dead"


def test_a_finding_is_told_again_when_it_gets_worse_or_comes_back():
    alarms = Alarms()
    warning, critical = (findings_of_run(records(losses), events={}) for losses in ([1.0, 0.5], [1.0, 3.0]))
    assert not warning and len(alarms.new_lines(1, critical)) == 1
    assert not alarms.new_lines(2, critical)
    assert not alarms.new_lines(3, ())
    assert len(alarms.new_lines(4, critical)) == 1


@pytest.mark.parametrize("seed", range(50))
def test_phases_of_fifty_runs_each(seed):
    """Histories whose phase is known by how they were made, with noise on every number."""
    generator = torch.Generator().manual_seed(seed)

    def noisy(value, share=0.03):
        return value * (1 + share * torch.randn(1, generator=generator).item())

    lr = 10 ** torch.empty(1).uniform_(-4, 0, generator=generator).item()
    start, edge = 10 ** torch.empty(2).uniform_(-1, 1, generator=generator)
    edge = float(edge) * 38 / lr  # that of Adam

    def history(losses, ratios, **last):
        moments = [
            Moment(step, noisy(loss * float(start)), noisy(ratio * edge), lr=lr, alive=1.0, edge=edge)
            for step, (loss, ratio) in enumerate(zip(losses, ratios, strict=True))
        ]
        end = moments[-1]
        moments[-1] = Moment(end.step, end.loss, end.sharpness, lr=lr, edge=edge, **{"alive": 1.0, **last})
        return training_phase(moments).name

    assert history([1, 0.5, 0.2], [0.3, 0.3, 0.4], drift=0.1) == "lazy"
    assert history([1, 0.5, 0.2], [0.3, 0.3, 0.4], drift=2.0) == "stable"
    assert history([1, 0.5, 0.2], [0.3, 0.7, 1.05], drift=2.0) == "edge"
    assert history([1, 5, 0.2], [1.5, 1.1, 0.5], drift=2.0) == "catapult"
    assert history([1, 90, 3000], [1.5, 1.7, 2.5], drift=2.0) == "divergent"
    assert history([1, 2, 0.5], [1.5, 1.1, 0.0], alive=0.0) == "dead"
    assert history([1, 5, 20], [1.5, 1.6, 1.7], drift=2.0) == "undecided"


def test_a_step_beyond_the_edge_that_was_not_read_again_is_judged_by_the_loss():
    """As where a schedule ends at zero: there is no edge at the last look."""
    start = Moment(1, 1.3, sharpness=1.9, lr=1.0, edge=1.0)
    found = training_phase([Moment(0, 1.3), start, Moment(48, 0.01)])
    assert found.name == "stable" and "(measured at step 1)" in found.reason
    assert training_phase([Moment(0, 1.3), start, Moment(48, 1.9)]).name == "undecided"


def test_without_curvature_a_falling_loss_is_stable_and_a_thousandfold_one_diverges():
    assert training_phase([Moment(0, 2.0), Moment(9, 0.5)]).name == "stable"
    assert training_phase([Moment(0, 89.0), Moment(9, 1.9e7)]).name == "divergent"
    assert training_phase([Moment(0, 2.3), Moment(9, 46.0)]).name == "undecided"
