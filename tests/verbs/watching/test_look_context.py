"""One look at a model in training: what is measured in it once and shared."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite.measure.curvature.hessians as hessians
from fixtures.watched import OPTIMIZERS, Watch, classes, classifier, trained
from theodolite.measure.curvature import hessian
from theodolite.verbs.watching import look_context
from theodolite.verbs.watching.looks import PRECONDITIONED, SHARPNESS


def test_curvature_is_read_as_the_step_sees_it_and_the_loss_as_evaluated():
    x, y = classes(96)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):  # running means that are not those of the probe
        model(3 * x + 5)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), every=1)
    record = watch.look(0)
    reference = copy.deepcopy(model).eval()
    assert record.value("loss on the probe") == pytest.approx(cross_entropy(reference(x), y).item(), rel=1e-5)
    batch_wise = copy.deepcopy(model).eval()
    batch_wise[1] = nn.BatchNorm1d(12, track_running_stats=False)
    batch_wise[1].load_state_dict({"weight": model[1].weight, "bias": model[1].bias})
    seen = record.value("loss on the probe, as the step sees it")
    assert seen == pytest.approx(cross_entropy(batch_wise(x), y).item(), rel=1e-5)
    dense = torch.linalg.eigvalsh(hessian(batch_wise.eval(), cross_entropy, (x, y)).dense())[-1].item()
    assert record.value(SHARPNESS) == pytest.approx(dense, rel=0.02)
    told = next(reading.meaning for _, reading in record.readings if reading.quantity == SHARPNESS)
    assert "batch's own statistics" in told


def test_a_large_model_on_a_processor_is_seen_scaled_within_its_graph(monkeypatch):
    """One vector less is held, and the matrix is the same; training stays bit for bit as it was."""
    seen = []

    def noted(operator, *args, **keywords):
        seen.append(torch.stack([operator(row) for row in torch.eye(operator.size)]))
        return searched(operator, *args, **keywords)

    searched = look_context.largest_beside
    monkeypatch.setattr(look_context, "largest_beside", noted)
    runs = []
    for shortened in (False, True):
        monkeypatch.setattr(look_context, "LARGE", 1)
        monkeypatch.setattr(hessians, "LONG", 1 if shortened else 1 << 20)
        monkeypatch.setattr(look_context.LookContext, "operator_is_large", shortened)
        runs.append(trained(OPTIMIZERS["AdamW"], watching=True, level="standard"))
    half = len(seen) // 2
    assert half == 5  # at the first look no step was taken yet
    for plain, scaled in zip(seen[:half], seen[half:], strict=True):
        assert torch.allclose(plain, scaled, rtol=1e-4, atol=1e-5 * plain.abs().max())
    (plain, *_, one), (scaled, *_, other) = runs
    assert all(torch.equal(plain[key], scaled[key]) for key in plain)
    for record, same in zip(one.records[1:], other.records[1:], strict=True):
        assert record.value(PRECONDITIONED) == pytest.approx(same.value(PRECONDITIONED), rel=1e-3)
