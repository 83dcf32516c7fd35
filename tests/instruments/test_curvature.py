"""Known curvatures, known noise, and quiet where targets are not classes."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
from theodolite.measure.dynamics import gradient_moments


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def regression():
    x = torch.randn(40, 5, generator=seeded(), dtype=torch.float64)
    model = nn.Sequential(nn.Linear(5, 1, bias=False)).double()
    nn.init.zeros_(model[0].weight)
    return model, x, x[:, :1] + 0.5 * x[:, 1:2]


@pytest.mark.parametrize(("share", "status"), [(0.5, "agrees"), (1.5, "above")])
def test_sharpness_of_a_quadratic_against_its_edge(share, status):
    model, x, y = regression()
    sharpest = 2 * torch.linalg.eigvalsh(x.T @ x / 40)[-1].item()
    (reading,) = th.read("sharpness", model, data=(x, y), loss=mse_loss, lr=share * 2 / sharpest)
    assert reading.measured == pytest.approx(sharpest, rel=1e-8)
    assert reading.status == status
    assert ("Beyond the edge" in reading.meaning) == (share > 1)
    (with_momentum,) = th.read("sharpness", model, data=(x, y), loss=mse_loss, lr=share * 2 / sharpest, momentum=0.6)
    assert with_momentum.status == "agrees"


def test_instruments_of_classes_decline_what_is_not_classes():
    model, x, y = regression()
    for name in ("collapse", "class-structure"):
        assert th.read(name, model, data=(x, y), loss=mse_loss) == ()
    tokens = torch.randint(0, 4, (6, 3), generator=seeded())
    sequence = nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4))
    loss = lambda z, t: cross_entropy(z.flatten(0, 1), t.flatten())  # noqa: E731
    assert th.read("collapse", sequence, data=(tokens, tokens), loss=loss) == ()
    assert th.read("gradient-noise", sequence, data=(tokens, tokens), loss=loss)
    assert th.read("hessian-spectrum", model, data=(x, y), loss=mse_loss)


def test_a_class_with_one_sample_and_a_missing_class_are_told():
    x = torch.randn(21, 6, generator=seeded())
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    labels = torch.tensor([0] * 10 + [1] * 10 + [2])
    readings = th.read("collapse", model, data=(x, labels), loss=cross_entropy)
    assert len(readings) == 5
    assert "one sample" in readings[0].meaning and "do not occur" in readings[0].meaning
    shares = [r.measured for r in th.read("class-structure", model, data=(x, labels), loss=cross_entropy)[:4]]
    assert sum(shares) == pytest.approx(1)


def test_gradient_moments_are_those_of_gradients_one_by_one():
    x = torch.randn(30, 6, generator=seeded(), dtype=torch.float64)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    labels = torch.randint(0, 3, (30,), generator=seeded(1))
    rows = []
    for i in range(30):
        found = torch.autograd.grad(cross_entropy(model(x[i : i + 1]), labels[i : i + 1]), list(model.parameters()))
        rows.append(torch.cat([g.flatten() for g in found]))
    G = torch.stack(rows)
    found = gradient_moments(model, cross_entropy, [(x[:7], labels[:7]), (x[7:], labels[7:])])
    scatter = torch.cov(G.T).trace().item()
    assert found.scatter.value == pytest.approx(scatter)
    assert found.squared_mean.value == pytest.approx(G.mean(0).square().sum().item() - scatter / 30)
    assert found.samples == 30
    assert gradient_moments(model, cross_entropy, (x[:1], labels[:1])) is None
