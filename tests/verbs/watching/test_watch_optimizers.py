"""A watch reads the optimizer: its edge, its last step, what it leaves out; and training is bit for bit as without it."""

import copy
import functools
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
import theodolite.measure.curvature.hessians as hessians
from theodolite.measure.curvature import hessian
from theodolite.verbs.watching import look_context
from theodolite.verbs.watching.looks import PRECONDITIONED, SHARPNESS, TRUST
from theodolite.verbs.watching.writers import scalar_writer

Watch = functools.partial(th.Watch, budget=math.inf)
"""Every look is whole: what is measured matters here, not what it costs."""

OPTIMIZERS = {
    "SGD": lambda own: torch.optim.SGD(own, 0.05),
    "momentum": lambda own: torch.optim.SGD(own, 0.05, momentum=0.9),
    "Adam": lambda own: torch.optim.Adam(own, 1e-2, foreach=True),
    "AdamW": lambda own: torch.optim.AdamW(own, 1e-2, fused=True),
}


def data(samples=96):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(samples) % 3
    return torch.randn(samples, 6, generator=generator) + 2 * torch.eye(6)[y], y


def classifier():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 3))


def trained(make, *, watching, accumulate=3, level="full", compiled=False, bare=False):
    x, y = data()
    model = classifier()
    outer = torch.compile(model, backend="eager") if compiled else model
    optimizer = make(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)
    torch.manual_seed(5)
    watch = None
    if watching:
        watch = Watch(
            model if bare else outer,
            optimizer=optimizer,
            probe=(x[:40], y[:40]),
            validation=(x, y),
            every=2,
            level=level,
            batch_size=8,
        )
    for step in range(12):
        if watch is not None:
            watch(step)
        for part in range(accumulate):
            rows = torch.randint(0, 96, (16 + part,))
            (cross_entropy(outer(x[rows]), y[rows]) / accumulate).backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return copy.deepcopy(model.state_dict()), optimizer.state_dict()["state"], torch.get_rng_state(), watch


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_bit_identical_with_dropout_normalization_and_accumulation(name):
    (plain, moments, drawn, _), (watched, others, also, watch) = (
        trained(OPTIMIZERS[name], watching=w) for w in (False, True)
    )
    assert all(torch.equal(plain[key], watched[key]) for key in plain)
    same = [
        torch.equal(moments[i][key], others[i][key])
        for i in moments
        for key in moments[i]
        if isinstance(moments[i][key], torch.Tensor)
    ]
    assert all(same) and torch.equal(drawn, also)
    last = watch.records[-1]
    assert last.value(TRUST) is not None
    assert last.value(SHARPNESS if name in ("SGD", "momentum") else PRECONDITIONED) > 0
    assert last.facts["edge"] > 0 and not [n for n in last.notes if not n.startswith("stationarity")]


@pytest.mark.parametrize("bare", [False, True], ids=["the compiled model", "the model inside"])
def test_a_compiled_model_is_watched_and_trains_the_same(bare):
    seen, runs = torch._dynamo.utils.counters, []
    for watching in (False, True):
        torch._dynamo.reset()
        seen.clear()
        runs.append(trained(OPTIMIZERS["AdamW"], watching=watching, level="cheap", compiled=True, bare=bare))
        assert seen["stats"]["unique_graphs"] >= 1 and not seen["graph_break"]
    (plain, *_), (watched, *_, watch) = runs
    assert all(torch.equal(plain[key], watched[key]) for key in plain)
    assert watch.records[-1].value(TRUST) is not None


def test_the_last_step_is_measured_as_training_made_it():
    """Against the loss before and after the step and the gradient before it, taken by hand."""
    x, y = data()
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    x = x.double()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), every=3, level="cheap")
    for step in range(4):
        watch(step)
        before = {n: p.detach().clone() for n, p in model.named_parameters()}
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        slopes = {n: p.grad.clone() for n, p in model.named_parameters()}
        if step == 2:
            optimizer.step()
            break
        optimizer.step()
    predicted = sum(((p.detach() - before[n]) * slopes[n]).sum().item() for n, p in model.named_parameters())
    change = cross_entropy(model(x), y).item() - loss.item()
    facts = watch.look(3).facts
    assert facts["predicted"] == pytest.approx(predicted, rel=1e-6)
    assert facts["change"] == pytest.approx(change, rel=1e-6)
    assert watch.records[-1].value(TRUST) == pytest.approx(change / predicted, rel=1e-5)


def test_curvature_is_read_as_the_step_sees_it_and_the_loss_as_evaluated():
    x, y = data()
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


class Partly(nn.Module):
    """A layer in use, one that the loss does not depend on, and a head."""

    def __init__(self):
        super().__init__()
        self.body, self.idle, self.head = nn.Linear(6, 8), nn.Linear(2, 2), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def heard_of(model, *optimizers, steps=2):
    """What a watch with the first optimizer is told, looked at after gradients were cleared."""
    x, y = data()
    heard = []
    watch = Watch(
        model,
        optimizer=optimizers[0],
        probe=(x, y),
        level="cheap",
        every=1,
        on_finding=lambda step, finding: heard.append((step, finding)),
    )
    for step in range(steps):
        cross_entropy(model(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()
        model.zero_grad()
        watch(step)
    return heard


def test_what_no_step_changes_is_named():
    torch.manual_seed(0)
    model = Partly()
    ((step, finding),) = heard_of(model, torch.optim.SGD([*model.head.parameters(), *model.idle.parameters()], 0.1))
    assert (step, finding.name, finding.severity) == (0, "not-in-optimizer", "note")
    assert finding.suggested["add_to_optimizer"] == ["body.weight", "body.bias"]
    assert "body.bias (in no group), idle.weight, idle.bias (without a gradient)" in finding.says


def test_what_another_optimizer_holds_is_not_named():
    torch.manual_seed(0)
    model = Partly().requires_grad_(True)
    model.idle.requires_grad_(False)
    heard = heard_of(model, torch.optim.SGD(model.head.parameters(), 0.1), torch.optim.Adam(model.body.parameters()))
    assert not heard


def test_a_loss_that_is_meant_to_rise_is_no_alarm():
    torch.manual_seed(0)
    model = Partly().requires_grad_(True)
    model.idle.requires_grad_(False)
    assert not heard_of(model, torch.optim.SGD(model.parameters(), 0.5, maximize=True), steps=8)


def test_an_optimizer_that_tells_no_lr_is_watched():
    class Plain(torch.optim.Optimizer):
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.data.add_(p.grad, alpha=-0.1)

    x, y = data()
    model = nn.Linear(6, 3)
    optimizer = Plain(model.parameters(), {})
    watch = Watch(model, optimizer=optimizer, probe=(x, y))
    cross_entropy(model(x), y).backward()
    optimizer.step()
    record = watch.look(1)
    assert record.lr is None and record.value(TRUST) > 0.5


def test_an_optimizer_without_a_known_edge_has_its_last_step_still():
    x, y = data()
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Rprop(model.parameters(), 1e-3)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), every=1)
    for step in range(3):
        watch(step)
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    record = watch.look(3)
    reading = next(reading for _, reading in record.readings if reading.quantity == SHARPNESS)
    assert reading.expected is None and "not known" in reading.meaning
    assert record.value(TRUST) is not None and math.isnan(record.facts["edge"])
    assert "Curvature was not compared with a limit" in watch.phase.reason


def test_a_large_model_is_read_in_parts_with_few_products():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 1100), nn.Tanh(), nn.Linear(1100, 1000), nn.Tanh(), nn.Linear(1000, 200))
    x, y = torch.randn(10, 6), torch.randn(10, 200)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), loss=mse_loss, every=2)
    for step in range(4):
        watch(step)
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()
    watch(4)
    last = watch.records[-1]
    assert not last.notes
    drift = next(reading for _, reading in last.readings if reading.quantity.startswith("drift of the tangent kernel"))
    assert "random projections" in drift.where and 0 < drift.measured < 1 and drift.stderr > 0
    travel = next(reading for _, reading in last.readings if reading.quantity.startswith("relative distance"))
    start = torch.cat([v.flatten() for v in watch._carried.origin.values()])
    now = torch.cat([p.detach().flatten() for p in model.parameters()])
    assert (
        abs(travel.measured - ((now - start).norm() / start.norm()).item()) < 4 * travel.stderr + 1e-4 * travel.measured
    )
    assert last.value(PRECONDITIONED) > 0


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
