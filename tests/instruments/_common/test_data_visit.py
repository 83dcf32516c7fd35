"""One visit serves all, and thinned data are spread over all of them."""

import time

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
from theodolite.core.budget import Allowance
from theodolite.instruments._common.data_visit import Kept, features_of, parted, sample_count, thinned
from theodolite.measure import batch_statistics, normalizes_batches
from theodolite.measure.curvature import hessian
from theodolite.measure.propagation import feature_covariances, matrix_layers


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def subject(samples=96, batch=32):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3))
    x = torch.randn(samples, 6, generator=seeded())
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    return th.Subject(model, data=list(zip(x.split(batch), y.split(batch), strict=True)), loss=cross_entropy, lr=0.1)


def counted(own):
    calls = []
    own.model.register_forward_pre_hook(lambda module, args: calls.append(len(args[0])))
    return calls


def test_instruments_of_features_share_one_visit():
    own = subject()
    calls = counted(own)
    for name in ("feature-spectrum", "feature-dimension", "bridge", "collapse", "signal"):
        th.read(name, own)
    assert sum(calls) == 96  # every sample once


def test_a_visit_is_made_again_when_weights_have_moved():
    own = subject()
    before = features_of(own)
    assert features_of(own) is before
    with torch.no_grad():
        own.model[0].weight.mul_(2)
    assert features_of(own) is not before


def test_the_visit_sees_what_separate_passes_would():
    own = subject()
    found = features_of(own)
    separate = feature_covariances(own.output, own.batches(), matrix_layers(own.model))
    for name, covariance in separate.items():
        assert torch.allclose(found.covariances[name].covariance, covariance.covariance)
    assert torch.equal(found.given["0"], own.data.source[0][0])
    assert len(found.rows["4"]) == len(found.answers) == len(found.targets) == found.samples == found.of == 96


def test_thinned_samples_are_spread_over_all_batches():
    own = subject()
    data = thinned(own, 24)
    assert isinstance(data, Kept)
    assert [len(batch) for batch in data] == [8, 8, 8]
    assert thinned(own, 96) is own.data
    left, right = parted(data)
    assert [len(batch) for batch in left] == [len(batch) for batch in right] == [4, 4, 4]
    singles = parted(thinned(own, 3))  # one of each batch: they go to both parts in turn
    assert [[len(batch) for batch in part] for part in singles] == [[1, 1], [1]]
    assert [len(part.first()) for part in parted(thinned(own, 3), 6)] == [
        1,
        1,
        1,
    ]  # more parts than samples: some are none
    few = own.within(Allowance(samples=24))
    assert features_of(few).samples == 24
    assert sample_count(few) == features_of(few).of == 96
    assert features_of(own).samples == 96  # all of them, where nothing limits it


def test_thinned_readings_have_errors_and_full_ones_do_not():
    whole, few = subject(), subject().within(Allowance(samples=40))
    for name in ("collapse", "feature-spectrum", "hessian-spectrum", "class-structure"):
        full = {(r.quantity, r.where): r for r in th.read(name, whole)}
        for reading in th.read(name, few):
            assert reading.stderr >= full[reading.quantity, reading.where].stderr or reading.stderr > 0
    assert all(r.stderr == 0 for r in th.read("collapse", whole))
    assert all(r.stderr > 0 for r in th.read("collapse", few) if r.measured > 0)


def test_a_budget_that_is_too_small_names_its_price():
    own = subject()
    found = th.survey(own, instruments=["class-structure", "rank"], budget=1e-6)
    assert [answer.question.name for answer in found.answers] == ["rank"]
    assert "would take" in found.skipped[0].reason and "--budget" in found.skipped[0].reason


def test_an_ample_budget_changes_no_number():
    names = ["collapse", "feature-spectrum", "sharpness", "gradient-noise", "hessian-spectrum", "kernel", "steering"]
    limited, free = (th.survey(subject(), instruments=names, budget=budget) for budget in ("10m", None))
    assert limited.skipped == free.skipped == ()
    for one, other in zip(limited.readings, free.readings, strict=True):
        assert (one.quantity, one.where) == (other.quantity, other.where)
        assert one.measured == pytest.approx(other.measured, rel=1e-4, abs=1e-6)


def normalized():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)).double()
    x = torch.randn(48, 5, generator=seeded(), dtype=torch.float64)
    return model.eval(), x, x[:, :1] * x[:, 1:2]


def test_batch_statistics_are_those_of_training_and_leave_no_trace():
    model, x, y = normalized()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with batch_statistics(model):
        inside = model(x)
    assert normalizes_batches(model)
    assert not torch.allclose(inside, model(x))
    model.train()
    assert torch.allclose(inside, model(x))
    model.load_state_dict(state)
    model.eval()
    with batch_statistics(model):
        found = hessian(model, mse_loss, (x, y))(torch.ones(73, dtype=torch.float64))
    own = list(model.train().parameters())
    slopes = torch.autograd.grad(mse_loss(model(x), y), own, create_graph=True)
    product = torch.autograd.grad(sum(slope.sum() for slope in slopes), own)
    assert torch.allclose(found, torch.cat([p.flatten() for p in product]), atol=1e-8)


def test_the_clock_changes_no_reading(monkeypatch):
    """A budget is counted work: under a clock ten times as fast, as on a busy machine, the very same is read."""
    names = ["sharpness", "hessian-spectrum", "gradient-noise", "class-structure", "kernel", "stationarity", "steering"]
    names += ["width-scaling", "regions", "gradient-spread"]
    plain = th.survey(subject(400), instruments=names, budget="2s")
    real = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 10 * real())
    busy = th.survey(subject(400), instruments=names, budget="2s")
    assert [skip.instrument for skip in busy.skipped] == [skip.instrument for skip in plain.skipped]
    assert {reading.quantity: reading.measured for reading in busy.readings} == {
        reading.quantity: reading.measured for reading in plain.readings
    }
    assert any(reading.stderr > 0 for reading in plain.readings)
