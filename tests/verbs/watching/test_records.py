"""What a watch read at one step, and all of them in a store."""

import csv

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.watched import Watch, classes, classifier


def test_a_run_that_was_killed_goes_on(tmp_path):
    x, y = classes()

    def start():
        return Watch(model, probe=(x, y), every=10, level="cheap", out=tmp_path)

    model = classifier()
    first = {name: value.clone() for name, value in model.state_dict().items()}
    watch = start()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    saved = None
    for step in range(35):
        watch(step, lr=0.1)
        if step == 15:
            saved = {name: value.clone() for name, value in model.state_dict().items()}
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    lines = (tmp_path / "records.jsonl").read_text()
    (tmp_path / "records.jsonl").write_text(lines[:-40])  # the crash tore the last line

    model = classifier(seed=9)
    model.load_state_dict(saved)
    watch = start()
    assert [r.step for r in watch.records] == [0, 10, 20]
    assert all(torch.equal(watch._carried.origin[name], value) for name, value in first.items())
    assert watch(15, lr=0.1) is None
    assert [r.step for r in watch.records] == [0, 10]  # step 20 will be done again
    assert watch(20, lr=0.2) is not None
    again = start()
    assert [(r.step, r.lr) for r in again.records] == [(0, 0.1), (10, 0.1), (20, 0.2)]
    travel = watch.records[-1].value("relative distance from the starting weights")
    assert again.rows() == watch.rows()
    assert travel > watch.records[1].value("relative distance from the starting weights") > 0
    with again.csv(tmp_path / "records.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == [str(row["step"]) for row in again.rows()]
    with pytest.raises(ValueError, match="another folder"):
        Watch(nn.Linear(6, 3), probe=(x, y), out=tmp_path)


def test_a_run_taken_up_at_the_step_of_a_look_keeps_that_look(tmp_path):
    """The process that made the step before it is gone, and with it what the look had seen of that step."""
    x, y = classes()

    def taken_up(weights, steps):
        model = classifier()
        model.load_state_dict(weights)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watch = Watch(model, optimizer=optimizer, probe=(x, y), every=4, level="cheap", out=tmp_path)
        for step in steps:
            watch(step)
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
        return watch, model.state_dict()

    begun, weights = taken_up(classifier().state_dict(), range(8))
    first = begun.look(8)
    assert any(look == "last-step" for look, _ in first.readings)
    again, _ = taken_up(weights, range(8, 10))
    assert again.records[-1].readings == first.readings
    other, _ = taken_up(classifier(seed=5).state_dict(), range(8, 10))  # other weights: another look
    assert other.records[-1].readings != first.readings


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    x, y = classes()
    watch = Watch(classifier(), probe=(x, y), level="cheap", out=tmp_path)
    for step in (0, 100, 200):
        watch(step)
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    (tmp_path / "records.jsonl").write_text("\n".join([lines[0], "{", lines[2]]) + "\n")
    with pytest.raises(ValueError, match="line 2 damaged"):
        Watch(classifier(), probe=(x, y), level="cheap", out=tmp_path)
