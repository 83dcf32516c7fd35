"""Looks keep to their price: what is dear is left out at some of them, never where something looks wrong."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.core import run as runs
from theodolite.verbs.diagnosing import alarms_of
from theodolite.verbs.watching import watch as watching
from theodolite.verbs.watching.history import answers_of, history_of, skipped_of
from theodolite.verbs.watching.look_context import Carried, LookContext
from theodolite.verbs.watching.records import THINNED, Record, last_standing, left_out, thinned_note
from theodolite.verbs.watching.thinning import DANGER, DOUBT, FIRST, FREE, PLANNED, RAREST, Thinning, doubt
from theodolite.verbs.watching.watched_run import moment_of

LAST_STEP = "change of the loss by the last step, measured over predicted"


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


class Run:
    """A small classifier in training: a step takes one second, a loss on the probe and a search for curvature take some."""

    def __init__(self, monkeypatch, *, price=0.5, product=0.0, seed=0, lr=0.05, **options):
        self.clock = Clock()
        monkeypatch.setattr(watching, "time", self.clock)
        torch.manual_seed(seed)
        self.y = torch.arange(32) % 3
        self.x = torch.randn(32, 6) + torch.eye(6)[self.y]
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)

        def priced(z, t):
            self.clock.now += price
            return cross_entropy(z, t)

        told = {"optimizer": self.optimizer, "probe": (self.x, self.y), "loss": priced, "every": 10}
        self.watch = th.Watch(self.model, **{**told, **options})
        searched = LookContext._searched

        def slow(context, count):
            self.clock.now += product
            return searched(context, count)

        monkeypatch.setattr(LookContext, "_searched", slow)
        self.step = 0

    def train(self, steps):
        for _ in range(steps):
            self.watch(self.step)
            self.optimizer.zero_grad()
            cross_entropy(self.model(self.x), self.y).backward()
            self.optimizer.step()
            self.clock.now += 1.0
            self.step += 1
        return self.watch


def is_whole(record):
    return THINNED not in record.facts


@pytest.mark.parametrize(("level", "price", "allowed"), [("cheap", 0.5, 1.0), ("standard", 8.0, 15.0)])
def test_looks_cost_in_the_mean_what_is_allowed(monkeypatch, level, price, allowed):
    watch = Run(monkeypatch, level=level, price=price).train(801)
    seconds = [record.seconds for record in watch.records]
    assert all(is_whole(record) for record in watch.records[:FIRST])
    dearest = max(seconds[1:])
    assert dearest > 2 * allowed
    later = seconds[FIRST:]
    planned = PLANNED * allowed * len(later)
    assert planned - dearest <= sum(later) <= planned  # what may be spent is spent


def test_every_look_reads_the_loss_the_way_and_held_out_data(monkeypatch):
    run = Run(monkeypatch, level="cheap")
    run = Run(monkeypatch, level="cheap", validation=(run.x, run.y))
    watch = run.train(401)
    thin = [record for record in watch.records if not is_whole(record)]
    assert thin
    for record in thin:
        assert {"loss", "step_loss", "validation_loss", "travel of 0.weight"} <= set(record.facts)
        assert "gradient" not in record.facts and record.value(LAST_STEP) is None
        assert left_out(record) == ("last-step",)
        assert "1 on average are allowed" in record.notes[-1]


def test_a_standard_look_leaves_out_curvature_first_and_the_gradient_where_that_is_dear(monkeypatch):
    cheap = Run(monkeypatch, price=1.0, product=20.0).train(401)
    assert {record.facts.get(THINNED, 0.0) for record in cheap.records} == {0.0, 1.0}
    assert all("trust" in record.facts for record in cheap.records[1:])
    dear = Run(monkeypatch, price=8.0).train(401)
    assert {record.facts.get(THINNED, 0.0) for record in dear.records} == {0.0, 2.0}
    assert left_out(next(r for r in dear.records if not is_whole(r))) == (
        "last-step",
        "sharpness",
        "kernel-drift",
        "collapse",
    )


def test_who_asks_for_whole_looks_gets_them(monkeypatch):
    for told in ({"budget": math.inf}, {"level": "full"}):
        assert all(map(is_whole, Run(monkeypatch, price=5.0, **told).train(201).records))
    run = Run(monkeypatch, price=5.0, level="cheap")
    run.train(181)
    assert not is_whole(run.watch.records[-1])
    assert is_whole(run.watch.look(run.step))


def test_short_runs_are_whole_whatever_a_look_costs(monkeypatch):
    watch = Run(monkeypatch, price=1e-4, level="cheap", every=1).train(300)  # a look takes a thousandth of a step
    assert all(map(is_whole, watch.records))
    seconds = sum(record.seconds for record in watch.records)
    assert 0 < seconds < FREE


def test_a_loss_that_jumps_buys_a_whole_look_and_its_alarm_at_once(monkeypatch):
    run = Run(monkeypatch, level="cheap")
    run.train(301)
    thin = not is_whole(run.watch.records[-1])
    while not thin:
        run.train(10)
        thin = not is_whole(run.watch.records[-1])
    run.optimizer.param_groups[0]["lr"] = 60.0
    run.train(10)
    assert is_whole(run.watch.records[-1])
    assert [finding.name for finding in run.watch.findings] == ["step-too-large"]


def test_training_is_bit_for_bit_the_same_under_thinned_looks(monkeypatch):
    run = Run(monkeypatch, level="standard", price=4.0)
    watch = run.train(201)
    assert len({record.facts.get(THINNED, 0.0) for record in watch.records}) > 1
    bare = Run(monkeypatch)
    bare.watch.close()
    bare.watch = lambda step: None
    bare.train(201)
    for one, other in zip(run.model.parameters(), bare.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_page_keeps_what_was_read_last_with_its_step(monkeypatch):
    run = Run(monkeypatch, price=8.0)
    run.train(121)
    for _ in range(10):
        if is_whole(run.watch.records[-1]):
            run.train(10)
    records = run.watch.records
    assert not is_whole(records[-1])
    whole = [record.step for record in records if is_whole(record)]
    answers = {answer.question.name: answer for answer in answers_of(records)}
    assert answers["sharpness"].readings[0].meaning.startswith(f"Last measured at step {whole[-1]}, not since.")
    assert list(answers["sharpness"].readings[0].series.x) == whole
    assert not skipped_of(records)
    page = run.watch.html()
    assert "thinned looks" in page and f"{len(records) - len(whole)} of {len(records)}" in page


def test_what_could_not_be_read_at_the_last_whole_look_is_still_told():
    note = "sharpness: expected finite curvature, got NaN"
    thin = Record(20, notes=(thinned_note(["sharpness"], "dear"),), facts={"loss": 1.0, THINNED: 1.0})
    assert [skip.instrument for skip in skipped_of([Record(10, notes=(note,)), thin])] == ["sharpness"]


def findings_of_run(records, events):
    return alarms_of(runs.Run(tuple(map(moment_of, [*records[:-1], *last_standing(records)])), events))


def looked(step, loss, **facts):
    return Record(step, 0.1, facts={"loss": loss, "step_loss": loss, **facts})


def test_a_finding_does_not_go_away_because_a_look_was_thinned():
    overshot = {"trust": -1.0, "predicted": -1.0, "change": 1.0, "gradient": 1.0}
    records = [looked(0, 1.0), looked(10, 1.3, **overshot), looked(20, 1.3, thinned=2.0)]
    found = findings_of_run(records, events={})
    assert [finding.name for finding in found] == ["step-too-large"]
    assert "the last step changed it by +1" in found[0].says
    dead = [looked(0, 1.0, alive=1.0), looked(10, 1.0, alive=0.0), looked(20, 1.0, thinned=1.0)]
    assert [finding.name for finding in findings_of_run(dead, events={})] == ["units-dead"]


def test_one_overshoot_read_once_does_not_count_three_times():
    overshot = {"trust": -1.0, "predicted": -1.0, "change": 1.0, "gradient": 1.0}
    whole = [looked(0, 1.0), *(looked(step, 0.95, **overshot) for step in (10, 20, 30))]
    assert findings_of_run(whole, events={})
    thin = [looked(0, 1.0), looked(10, 0.95, **overshot), *(looked(step, 0.95, thinned=2.0) for step in (20, 30, 40))]
    assert not findings_of_run(thin, events={})


def test_the_phase_stands_on_what_was_read_last():
    read = {"sharpness": 1.0, "edge": 20.0, "alive": 1.0, "drift": 0.1}
    records = [looked(0, 1.0, **{**read, "drift": 0.0}), looked(10, 0.5, **read), looked(20, 0.2, thinned=1.0)]
    assert th.theory.dynamics.training_phase(history_of(records)).name == "lazy"
    assert th.theory.dynamics.training_phase(history_of(records[:-1])).name == "lazy"


def test_doubt_is_told_by_loss_step_edge_and_findings():
    calm = [looked(0, 4.0), looked(10, 3.0, sharpness=1.0, edge=20.0), looked(20, 2.0, thinned=1.0)]
    assert doubt(calm, 1.5, 0.1, standing=False) == 0
    assert doubt(calm, 1.5, 0.1, standing=True) == DANGER
    assert doubt(calm, math.nan, 0.1, standing=False) == DANGER
    assert doubt(calm, 4.7, 0.1, standing=False) == DANGER
    assert doubt(calm, 3.2, 0.1, standing=False) == DOUBT
    assert doubt(calm, 2.0, 0.1, standing=False) == DOUBT  # it does not move at all
    assert doubt(calm, 1.5, 0.2, standing=False) == DOUBT
    assert doubt(calm, 1.5, 0.04, standing=False) == DOUBT
    near = [*calm, looked(30, 1.9, sharpness=19.0, edge=20.0)]
    assert doubt(near, 1.5, 0.1, standing=False) == DOUBT
    hovers = [*near, looked(40, 1.8, sharpness=20.0, edge=20.0)]
    assert doubt(hovers, 1.5, 0.1, standing=False) == 0
    assert doubt([looked(0, -4.0), looked(10, -5.0)], -6.0, 0.1, standing=False) == 0


def simulated(whole, thin, *, allowed, looks, in_doubt=0):
    """Seconds of looks of a run whose steps take one second, after those that are free, and how many were whole."""
    account, spent, wholes = Thinning(allowed), [], 0
    for _ in range(looks):
        size = account.size(1.0)
        if size != "whole" and in_doubt and account.affords(in_doubt, 1.0):
            size = "whole"
        seconds = whole if size == "whole" else thin
        account.paid(size, seconds, 0.0, 1.0)
        spent.append(seconds)
        wholes += size == "whole"
    return spent, wholes


def test_doubt_without_end_cannot_spend_more_than_its_credit():
    for credit in (0, DOUBT, DANGER):
        spent, _ = simulated(44.0, 2.0, allowed=15.0, looks=400, in_doubt=credit)
        over = sum(spent[FIRST:]) - PLANNED * 15.0 * (len(spent) - FIRST)
        assert over <= credit * 44.0
        assert over >= -44.0


def test_a_run_whose_bare_looks_are_too_dear_still_sees_one_in_twenty_whole():
    _, wholes = simulated(50.0, 5.0, allowed=1.0, looks=FIRST + 10 * RAREST)
    assert wholes == FIRST + 10


@pytest.mark.parametrize(("first_look", "known"), [(4, 5), (9, 3)])
def test_the_memory_of_looks_does_not_pass_for_that_of_training(first_look, known):
    """Looks that may take twice what training takes doubled their bound from one to the next."""
    carried, training = Carried({}), 5
    carried.note_memory(1)  # a model was loaded
    carried.note_memory(3)  # the gradient on the probe of the first look
    assert carried.most_bytes == 3
    most = carried.after_look = first_look
    for _ in range(4):
        most = max(most, training)
        carried.note_memory(most)
        assert carried.most_bytes == known  # where the first look hides training, what was known before it
        most = carried.after_look = max(most, 2 * carried.most_bytes)
    carried.note_memory(100)  # training has grown beyond all looks
    assert carried.most_bytes == 100
