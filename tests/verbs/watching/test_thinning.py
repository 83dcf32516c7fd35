"""Looks keep to their price: what is dear is left out at some of them, never where something looks wrong."""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.core import run as runs
from theodolite.evidence.work import Price
from theodolite.verbs.diagnosing import alarms_of
from theodolite.verbs.watching import watch as watching
from theodolite.verbs.watching.history import answers_of, skipped_of
from theodolite.verbs.watching.look_context import Carried
from theodolite.verbs.watching.records import THINNED, Record, last_standing, left_out
from theodolite.verbs.watching.thinning import DANGER, DOUBT, LookAccount, LookPrices, doubt
from theodolite.verbs.watching.watched_run import moment_of

LAST_STEP = "change of the loss by the last step, measured over predicted"


@pytest.fixture(scope="module")
def standard():
    """A run whose looks are whole, without curvature, and without a gradient."""
    with pytest.MonkeyPatch.context() as patch:
        run = Run(patch, every=2, budget=0.2)
        run.train(1201)
    return run


class Run:
    """A small classifier in training, whose passes cost so many nominal seconds."""

    def __init__(self, monkeypatch, *, start=1e-3, sample=1e-4, seed=0, lr=0.05, samples=32, **options):
        monkeypatch.setattr(watching, "price", lambda subject: Price(start, sample))
        torch.manual_seed(seed)
        self.y = torch.arange(samples) % 3
        self.x = torch.randn(samples, 6) + torch.eye(6)[self.y]
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        told = {"optimizer": self.optimizer, "probe": (self.x, self.y), "loss": cross_entropy, "every": 10}
        self.watch = th.Watch(self.model, **{**told, **options})
        self.step = 0

    def train(self, steps):
        for _ in range(steps):
            self.watch(self.step)
            x, y = self.x[:32], self.y[:32]
            self.optimizer.zero_grad()
            cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
            self.step += 1
        return self.watch


def is_whole(record):
    return THINNED not in record.facts


def spent(watch):
    """Nominal seconds of looks, and of training."""
    _, a_step = watch._prices(*watch._samples())
    return sum(watch._reader.account.spent.values()), watch._steps * a_step


@pytest.mark.parametrize(("level", "share"), [("cheap", 0.01), ("standard", 0.05)])
def test_looks_take_their_share_of_the_work_of_a_run_the_first_counted_in(monkeypatch, level, share):
    watch = Run(monkeypatch, level=level, every=2).train(2001)
    looks, training = spent(watch)
    assert 0.5 * share * training < looks <= share * training
    assert len({record.facts.get(THINNED, 0.0) for record in watch.records}) > 1


def test_the_same_run_is_looked_at_in_the_same_way_whatever_the_clock_says(monkeypatch):
    first, again = (Run(monkeypatch, every=2), Run(monkeypatch, every=2))
    first.train(401)
    times = itertools.count(step=1000)
    monkeypatch.setattr(watching.time, "perf_counter", lambda: next(times))
    again.train(401)
    sizes = [[(r.step, r.facts.get(THINNED)) for r in run.watch.records] for run in (first, again)]
    assert sizes[0] == sizes[1] and len(sizes[0]) > 3


def test_a_short_run_has_its_first_look_in_advance_and_waits_until_it_is_earned(monkeypatch):
    watch = Run(monkeypatch, start=1e-5, sample=1e-7, every=1).train(101)  # a look costs more than ten steps
    assert [record.step for record in watch.records] == [0]
    assert watch.records[0].facts[THINNED] == 2.0
    assert len(watch.rates) == 101  # the learning rate is noted all the same


def test_a_look_reads_as_many_samples_as_training_has_in_a_batch(monkeypatch):
    run = Run(monkeypatch, samples=96)
    run = Run(monkeypatch, samples=96, budget=0.5, batch_size=32, validation=(run.x, run.y))
    watch = run.train(21)
    assert sum(map(len, watch.looked_at.data)) == 32
    assert watch.records[-1].facts["validation_samples"] == 32
    whole = Run(monkeypatch, samples=96, budget=math.inf).train(21)
    assert sum(map(len, whole.looked_at.data)) == 96


def test_every_look_reads_the_loss_the_way_and_held_out_data(monkeypatch):
    run = Run(monkeypatch, level="cheap")
    run = Run(monkeypatch, level="cheap", validation=(run.x, run.y))
    watch = run.train(801)
    thin = [record for record in watch.records if not is_whole(record)]
    assert thin
    for record in thin:
        assert {"loss", "step_loss", "validation_loss", "travel of 0.weight"} <= set(record.facts)
        assert "gradient" not in record.facts and record.value(LAST_STEP) is None
        assert left_out(record) == ("last-step",)
        assert "1 % of the work of training" in record.notes[-1]


def test_a_standard_look_leaves_out_curvature_first_and_then_the_gradient(standard):
    watch = standard.watch
    assert {record.facts.get(THINNED, 0.0) for record in watch.records} == {0.0, 1.0, 2.0}
    bare = next(r for r in watch.records if r.facts.get(THINNED) == 2.0)
    assert left_out(bare) == ("last-step", "sharpness", "kernel-drift", "collapse")
    assert "gradient" in next(r for r in watch.records if r.facts.get(THINNED) == 1.0).facts


def test_who_asks_for_whole_looks_gets_them(monkeypatch):
    for told in ({"budget": math.inf}, {"level": "full"}):
        watch = Run(monkeypatch, **told).train(101)
        assert all(map(is_whole, watch.records)) and len(watch.records) == 11
    run = Run(monkeypatch, level="cheap")
    run.train(181)
    assert is_whole(run.watch.look(run.step))


def test_a_loss_that_jumps_is_looked_at_before_it_is_due_and_has_its_alarm(monkeypatch):
    run = Run(monkeypatch, level="cheap", every=1000)
    run.train(301)
    assert len(run.watch.records) == 1
    run.optimizer.param_groups[0]["lr"] = 60.0
    run.train(40)
    assert len(run.watch.records) > 1 and run.watch.records[1].step < 340
    assert "step-too-large" in [finding.name for finding in run.watch.findings]


def test_training_is_bit_for_bit_the_same_under_thinned_looks(monkeypatch):
    run = Run(monkeypatch, level="standard", every=2)
    watch = run.train(401)
    assert len({record.facts.get(THINNED, 0.0) for record in watch.records}) > 1
    bare = Run(monkeypatch)
    bare.watch.close()
    bare.watch = lambda step: None
    bare.train(401)
    for one, other in zip(run.model.parameters(), bare.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_page_keeps_what_was_read_last_with_its_step(standard, monkeypatch):
    run = standard
    monkeypatch.setattr(watching, "price", lambda subject: Price(1e-3, 1e-4))
    for _ in range(10):
        if is_whole(run.watch.records[-1]):
            run.train(50)
    records = run.watch.records
    assert not is_whole(records[-1])
    whole = [record.step for record in records if is_whole(record)]
    answers = {answer.question.name: answer for answer in answers_of(records)}
    assert answers["sharpness"].readings[0].meaning.startswith(f"Last measured at step {whole[-1]}, not since.")
    assert not skipped_of(records)
    page = run.watch.html()
    assert "shortened measurements" in page and f"{len(records) - len(whole)} of {len(records)}" in page


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


def test_doubt_is_told_by_loss_step_edge_and_findings():
    calm = [looked(0, 4.0), looked(10, 3.0, sharpness=1.0, edge=20.0), looked(20, 2.0, thinned=1.0)]
    assert doubt([], 1.5, 0.1, standing=False) == doubt(calm, 1.5, 0.1, standing=False) == 0
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


def test_doubt_without_end_cannot_spend_more_than_its_credit():
    prices, trained = LookPrices(1.0, 4.0, 6.0, 20.0), 0.0
    for credit in (0, DOUBT, DANGER):
        account = LookAccount(0.05)
        for look in range(400):
            trained = 100.0 * look
            size = account.size(prices, trained)
            if size == "loss" and credit and account.affords(credit, prices, trained):
                size = "gradient"
            account.paid(size, prices, 20)
        assert account.left("gradient", trained) >= -(credit + 1) * prices.gradient


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


def test_a_pass_is_priced_in_the_precision_of_training():
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(32, 6), torch.arange(32) % 3
    watch = th.Watch(model, probe=(x, y), loss=cross_entropy, optimizer=optimizer, every=10)
    seen = []
    model.register_forward_hook(lambda module, given, out: seen.append(out.dtype))
    watch._prices(*watch._samples())
    assert seen == [torch.float32]  # before training nobody knows
    with torch.autocast("cpu", torch.bfloat16):
        cross_entropy(model(x), y).backward()
    seen.clear()
    watch._prices(*watch._samples())
    watch._prices(*watch._samples())
    assert seen == [torch.bfloat16]  # counted again, once


def test_few_looks_before_they_are_due_stand_open():
    account, prices, taken = LookAccount(0.05), LookPrices(loss=1.0, gradient=3.0, product=6.0, rest=20.0), 0
    while account.allows_look(prices, trained=0.0) and taken < 50:
        account.paid("loss", prices, 0)
        taken += 1
    assert taken == DANGER
