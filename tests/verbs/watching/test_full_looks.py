"""The looks of level full."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.watched import Watch, classes, half_square, seeded
from theodolite.measure.curvature import hessian
from theodolite.verbs.watching import look_reader
from theodolite.verbs.watching.looks import LOOKS


def test_full_level_reads_the_top_subspace_noise_and_collapse():
    x, y = classes()
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    watch = Watch(model, probe=(x.double(), y), level="full")
    record = watch.look(0, lr=0.1)
    H = hessian(model, cross_entropy, (x.double(), y)).dense()
    top = torch.linalg.eigh(H)[1][:, -3:]
    loss = cross_entropy(model(x.double()), y)
    g = torch.cat([s.flatten() for s in torch.autograd.grad(loss, list(model.parameters()))])
    share = ((g @ top).square().sum() / g.square().sum()).item()
    assert record.value("share of the gradient in the top Hessian directions") == pytest.approx(share, rel=0.02)
    assert record.value("trace of the gradients' covariance") > 0
    assert record.value("NC1, scatter within classes relative to between classes") > 0
    assert any(note.startswith("stationarity") and "batch_size" in note for note in record.notes)


def test_stationarity_is_refused_while_drifting_and_told_where_sgd_is_stationary(monkeypatch):
    few = [look for look in LOOKS if look.name in ("loss", "stationarity")]
    monkeypatch.setattr(look_reader, "looks_of", lambda level: few)
    generator = seeded(3)
    x = torch.randn(128, 4, generator=generator, dtype=torch.float64)
    y = x @ torch.ones(4, 1, dtype=torch.float64) + torch.randn(128, 1, generator=generator, dtype=torch.float64)
    model = nn.Linear(4, 1, bias=False).double()
    nn.init.constant_(model.weight, 1e3)
    watch = Watch(model, probe=(x, y), loss=half_square, every=4, level="full", batch_size=4, samples=128)
    seen = []
    for step in range(1400):
        record = watch(step, lr=0.2)
        seen += [] if record is None else [record]
        rows = torch.randperm(128, generator=generator)[:4]
        (slope,) = torch.autograd.grad(half_square(model(x[rows]), y[rows]), [model.weight])
        with torch.no_grad():
            model.weight -= 0.2 * slope
    told = [note for record in seen for note in record.notes if note.startswith("stationarity")]
    assert any("40 measurements" in note for note in told)
    assert any("drifting" in note for note in told)
    quantity = "pull of the loss, relative to stationary SGD"
    last = next(reading for _, reading in seen[-1].readings if reading.quantity == quantity)
    assert abs(last.measured - 1) < 3 * last.stderr
    assert last.stderr < 0.2
