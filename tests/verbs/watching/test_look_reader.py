"""One look: what fails in it is a note, and what is left out is said."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from fixtures.watched import Watch, classes, classifier
from theodolite.core.reading import Reading
from theodolite.verbs.watching.look_reader import LookResult
from theodolite.verbs.watching.looks import Look
from theodolite.verbs.watching.records import THINNED, left_out


def test_a_look_that_fails_keeps_what_it_read_elsewhere_and_is_a_note():
    def fails(context):
        yield Reading(quantity="one", measured=1.0)
        raise ValueError("two\nlines")

    def answers(context):
        yield Reading(quantity="other", measured=2.0)

    found = LookResult()
    for name, read in (("broken", fails), ("sound", answers)):
        found.ask(Look(name=name, question="?", level="cheap", cost="free", read=read), None)
    assert [reading.quantity for _, reading in found.readings] == ["other"]
    assert found.notes == ["broken: two lines"]


def test_after_a_loss_that_is_none_nothing_else_is_read():
    x, y = classes()
    model = classifier()
    watch = Watch(model, probe=(x, y), loss=cross_entropy, every=1)
    assert len({name for name, _ in watch.look(0).readings}) > 2
    with torch.no_grad():
        model[0].weight.fill_(float("nan"))
    record = watch.look(1)
    assert {name for name, _ in record.readings} == {"loss"}
    assert "loss is not finite at step 1" in record.notes


def test_the_first_look_within_a_budget_reads_the_loss_and_says_what_it_left_out():
    x, y = classes()
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), loss=cross_entropy, every=1)
    watch(0)
    (record,) = watch.records
    assert record.facts[THINNED] == 2.0
    assert {"sharpness", "kernel-drift", "last-step"} <= set(left_out(record))
