"""The watch reads what is true, leaves training as it was, and survives crashes."""

import itertools
import json
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
from fixtures.watched import Watch, classes, classifier, half_square, seeded
from theodolite.construct.propagation import network
from theodolite.measure.curvature import hessian

SHARPNESS = "largest Hessian eigenvalue"


def descend(model, x, y, *, loss=half_square, lr, steps, watch, momentum=0.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    for step in range(steps):
        watch(step, lr=lr, momentum=momentum)
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    watch.look(steps, lr=lr, momentum=momentum)
    return watch


class FrozenGates(nn.Module):
    """A ReLU layer whose gates stay as one datum set them at the start."""

    def __init__(self, width, x, generator):
        super().__init__()
        self.u = nn.Parameter(torch.randn(width, x.shape[1], generator=generator, dtype=x.dtype))
        self.v = nn.Parameter(torch.randn(width, generator=generator, dtype=x.dtype))
        self.register_buffer("gates", (x @ self.u.detach().T >= 0).to(x.dtype)[0])

    def forward(self, x):
        return ((x @ self.u.T) * self.gates @ self.v / self.u.numel() ** 0.5)[:, None]


def one_datum(seed=0, width=400):
    generator = seeded(seed)
    x = torch.randn(1, 10, generator=generator, dtype=torch.float64)
    return FrozenGates(width, x, generator), x, torch.zeros(1, 1, dtype=torch.float64)


def test_training_is_bit_for_bit_the_same_with_a_watch():
    x, y = classes()
    ends = []
    for watched in (False, True):
        model = classifier()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        torch.manual_seed(5)  # dropout
        watch = Watch(model, probe=(x, y), every=2, level="full", batch_size=20) if watched else None
        for step in range(5):
            if watch is not None:
                watch(step, lr=0.1, momentum=0.9)
                assert model.training
            optimizer.zero_grad()
            cross_entropy(model(x[: 20 + step]), y[: 20 + step]).backward()
            before = [p.grad.clone() for p in model.parameters()]
            if watch is not None:
                watch.look(step, lr=0.1, momentum=0.9)
                assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), before, strict=True))
            optimizer.step()
        ends.append((model.state_dict(), torch.get_rng_state()))
    assert all(torch.equal(ends[0][0][name], ends[1][0][name]) for name in ends[0][0])
    assert torch.equal(ends[0][1], ends[1][1])


def test_looks_are_taken_when_due_and_rows_hold_every_reading():
    x, y = classes()
    model = classifier()
    watch = Watch(model, probe=[x, y], every=4, level="cheap")
    taken = [step for step in range(1, 12) if watch(step, lr=0.1)]
    assert taken == [1, 5, 9]
    assert watch(11, lr=0.1) is None  # the same step told twice, as when gradients are accumulated
    assert {row["quantity"] for row in watch.rows()} == {
        "loss on the probe",
        "loss on the probe, as the step sees it",
        "norm of the gradient on the probe",
        "relative distance from the starting weights",
    }
    model.eval()
    assert watch.records[0].value("loss on the probe") == pytest.approx(cross_entropy(model(x), y).item(), rel=1e-6)
    frame = watch.frame()
    assert list(frame["step"].unique()) == [1, 5, 9]
    assert json.loads(watch.json())["readings"][0]["step"] == 1
    assert "Undecided" in str(watch) and "3 records" in repr(watch)
    assert watch.overhead > 0


def test_sharpness_begun_from_the_last_look_is_that_of_the_dense_hessian():
    x, y = classes()
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    watch = Watch(model, probe=(x, y), every=1, budget=math.inf)
    descend(model, x, y, loss=cross_entropy, lr=0.2, steps=15, watch=watch, momentum=0.5)
    dense = torch.linalg.eigvalsh(hessian(model, cross_entropy, (x, y)).dense())[-1].item()
    last = next(reading for _, reading in watch.records[-1].readings if reading.quantity == SHARPNESS)
    assert abs(last.measured - dense) <= 3 * last.stderr + 1e-5 * dense
    assert last.measured == pytest.approx(dense, rel=0.02)
    assert last.expected.high == pytest.approx(3 / 0.2)


def test_full_batch_descent_ends_at_the_edge_and_the_page_shows_it(tmp_path):
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    y = 8 * x**4 - 8 * x**2 + 1
    spec = th.Mlp(widths=(16, 16, 16), activation="tanh", weight_variance=1.5, bias_variance=0.1)
    model = network(spec, 1, 1, generator=seeded(), dtype=torch.float64)
    watch = Watch(model, probe=(x, y), loss=half_square, every=40, budget=math.inf)
    descend(model, x, y, lr=0.15, steps=800, watch=watch)
    late = [r.value(SHARPNESS) * 0.15 / 2 for r in watch.records if r.step >= 600]
    assert 0.97 <= sum(late) / len(late) <= 1.06
    assert watch.phase.name == "edge"
    page = watch.html(tmp_path / "run.html")
    assert "2/lr" in page and "Phase: edge" in page and "of training time" in page and "<script" not in page
    assert (tmp_path / "run.html").read_text() == page


@pytest.mark.parametrize(("product", "phase"), [(1.0, "lazy"), (3.0, "catapult"), (6.0, "divergent")])
def test_phases_of_the_frozen_gate_model(product, phase):
    model, x, y = one_datum()
    watch = Watch(model, probe=(x, y), loss=half_square, every=1, budget=math.inf)
    sharpest = th.read("sharpness", model, data=(x, y), loss=half_square, lr=1.0)[0].measured
    descend(model, x, y, lr=product / sharpest, steps=40, watch=watch)
    assert watch.phase.name == phase, watch.phase.reason
    assert watch.html()


@pytest.mark.parametrize(("product", "phase"), [(1.0, "lazy"), (3.0, "catapult"), (6.0, "divergent")])
def test_phases_of_a_real_network(product, phase):
    generator = seeded()
    x, y = (torch.randn(8, n, generator=generator, dtype=torch.float64) for n in (10, 1))
    model = network(th.Mlp(1, "tanh", 1.0), 10, 1, width=512, generator=generator, dtype=torch.float64)
    sharpest = th.read("sharpness", model, data=(x, y), loss=half_square, lr=1.0)[0].measured
    watch = Watch(model, probe=(x, y), loss=half_square, every=10, budget=math.inf)
    descend(model, x, y, lr=product / sharpest, steps=120, watch=watch)
    assert watch.phase.name == phase, watch.phase.reason


@pytest.mark.parametrize("samples", [1, 6])
def test_a_dead_network_is_told_from_a_catapult_though_its_loss_is_zero(samples):
    x = torch.rand(samples, 4, generator=seeded()) + 0.1
    model = nn.Sequential(nn.Linear(4, 20), nn.ReLU(), nn.Linear(20, 1))
    y = torch.zeros(samples, 1)
    watch = Watch(model, probe=(x, y), loss=mse_loss, every=1)
    watch(0, lr=5.0)
    with torch.no_grad():
        model[0].weight.fill_(-1.0)  # every unit off on these inputs
        model[0].bias.fill_(-1.0)
        model[2].bias.zero_()
    record = watch(1, lr=5.0)
    assert record.value("loss on the probe") == 0
    assert watch.phase.name == "dead"
    assert [finding.name for finding in watch.findings] == ["units-dead"]
    alive = next(
        reading for _, reading in record.readings if reading.quantity.startswith("tangent kernel that separates")
    )
    assert alive.status == "below"


def test_a_loss_or_gradient_that_is_not_finite_is_recorded_and_training_goes_on(tmp_path):
    x, y = classes()
    model = classifier()
    watch = Watch(model, probe=(x, y), every=1, out=tmp_path)
    watch(0, lr=0.1)
    with torch.no_grad():
        model[0].weight[0, 0] = math.nan
    record = watch(1, lr=0.1)
    assert record.notes == ("loss is not finite at step 1",)
    assert watch.phase.name == "divergent"
    assert math.isnan(record.value("loss on the probe"))
    assert "loss is not finite at step 1" in watch.html()
    again = Watch(classifier(), probe=(x, y), every=1, out=tmp_path)
    assert again.phase.name == "divergent" and len(again.rows()) == len(watch.rows())

    root = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(root.weight)
    flat = Watch(root, probe=(torch.ones(2, 1), torch.ones(2, 1)), loss=lambda z, t: z.abs().sqrt().mean())
    assert flat.look(3).notes == ("gradient is not finite at step 3",)


def test_what_cannot_be_watched_is_refused_in_words():
    x, y = classes()
    with pytest.raises(ValueError, match="reduction='mean'"):
        Watch(classifier(), probe=(x, y), loss=nn.CrossEntropyLoss(reduction="none"))
    assert "random in eval mode" in Watch(Noisy(), probe=(x, y)).text(width=400)
    with pytest.raises(ValueError, match="a target"):
        Watch(classifier(), probe=x)
    with pytest.raises(ValueError, match="got every=0"):
        Watch(classifier(), probe=(x, y), every=0)
    with pytest.raises(ValueError, match="cheap, standard or full"):
        Watch(classifier(), probe=(x, y), level="dear")
    with pytest.raises(ValueError, match="share of training such"):
        Watch(classifier(), probe=(x, y), budget=-1)
    single = torch.cat([y[:20], torch.tensor([2])]) % 2
    single[-1] = 2
    record = Watch(classifier(), probe=(x[:21], single)).look(0)
    told = next(reading for _, reading in record.readings if reading.quantity.startswith("NC1"))
    assert "lass 2 has one sample" in told.meaning


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        return self.layer(x) + torch.randn(len(x), 3)


def test_looks_of_auto_come_farther_and_farther_apart_within_their_budget():
    x, y = classes()
    watch = Watch(nn.Linear(6, 3), probe=(x, y), loss=cross_entropy, level="cheap", every="auto", budget=0.5)
    taken = [step for step in range(4000) if watch(step)]
    apart = [b - a for a, b in itertools.pairwise(taken)]
    assert taken[0] == 0 and len(taken) > 10
    assert max(apart) > 1.5 * apart[1]  # the first one is in advance, so that the second comes late


def test_a_loader_is_read_once_and_a_wrapped_model_is_unwrapped():
    x, y = classes()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=25, shuffle=True)
    model = classifier()
    watch = Watch(nn.DataParallel(model), probe=loader, level="cheap")
    assert watch.model is model
    assert watch.look(0).value("loss on the probe") == watch.look(1).value("loss on the probe")


def test_the_page_is_a_dashboard_and_a_folder_has_it_at_every_look(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = Watch(model, optimizer=optimizer, probe=(x, y), level="cheap", every=1, out=tmp_path)
    for step in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        watch(step)
        live = (tmp_path / "live.html").read_text()
        assert f"{step + 1}, level cheap" in live
    assert 'th-dashboard th-wide"' in live
    assert {"gradient of 0.weight", "update of 0.weight", "travel of 2.weight"} <= set(watch.records[-1].facts)
    page = watch.html()
    assert page.index("th-verdict") < page.index('th-dashboard th-wide"') < page.index("Over the steps")
    assert 'th-dashboard th-wide"' in watch._repr_html_()
