"""Numbers of a watch as they are written; benchmarks/writers.py writes them with wandb, MLflow and aim."""

import logging
import re

import pytest
import torch
from torch import nn

from fixtures.watched import Watch
from theodolite.verbs.watching.writers import scalar_writer

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


def data(samples=96):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(samples) % 3
    return torch.randn(samples, 6, generator=generator) + 2 * torch.eye(6)[y], y


class Run:
    """As wandb, mlflow and aim take numbers."""

    def __init__(self, method):
        self.seen = []
        setattr(self, method, getattr(self, f"_{method}"))

    def _log(self, numbers, step):
        self.seen += [(name, value, step) for name, value in numbers.items()]

    def _log_metric(self, key, value, step):
        self.seen.append((key, value, step))

    def _track(self, value, name, step):
        self.seen.append((name, value, step))


@pytest.mark.parametrize("method", ["log", "log_metric", "track"])
def test_numbers_reach_whatever_people_log_to(method):
    x, y = data()
    run = Run(method)
    watch = Watch(nn.Linear(6, 3), probe=(x, y), level="cheap", writer=run)
    watch(7, lr=0.1)
    assert ("theodolite/loss/loss-on-the-probe", watch.records[0].facts["loss"], 7) in run.seen
    with pytest.raises(TypeError, match="expected a writer"):
        scalar_writer(3)
