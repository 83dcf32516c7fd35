"""Numbers of a watch as they are written; benchmarks/writers.py writes them with wandb, MLflow and aim."""

import functools
import logging
import math
import re

import pytest
import torch
from torch import nn

import theodolite as th

Watch = functools.partial(th.Watch, budget=math.inf)
"""Every look is whole: what is measured matters here, not what it costs."""

LOSS = "theodolite/loss/loss-on-the-probe"


def watched(writer):
    """A short training of a small classifier with a look at every second step, all of level standard."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    x, y = torch.randn(32, 4), torch.arange(32) % 3
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), every=2, writer=writer)
    for step in range(5):
        watch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    watch.close()
    return watch


def losses(watch):
    return [record.facts["loss"] for record in watch.records]


def quantities(watch):
    return {(look, reading.quantity) for record in watch.records for look, reading in record.readings}


def test_names_are_of_letters_that_every_service_takes():
    seen = {}
    watch = watched(lambda numbers, step: seen.setdefault(step, {}).update(numbers))
    assert [values[LOSS] for values in seen.values()] == losses(watch)
    names = {name for values in seen.values() for name in values}
    assert len(names) == len(quantities(watch)) and all(re.fullmatch(r"[\w./ -]+", name, re.ASCII) for name in names)


def test_a_writer_that_fails_does_not_end_the_training(caplog):
    def refuses(numbers, step):
        raise ConnectionError("the server is\ngone")

    with caplog.at_level(logging.WARNING, logger="theodolite"):
        watch = watched(refuses)
    assert len(watch.records) == 3
    assert [record.message for record in caplog.records if "written" in record.message] == [
        "numbers are no longer written: the server is gone"
    ]


@pytest.mark.parametrize("bad", [3, object()])
def test_what_is_no_writer_is_refused(bad):
    with pytest.raises(TypeError, match="expected a writer"):
        watched(bad)
