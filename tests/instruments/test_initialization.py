import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.instruments._common.layers import layers_of
from theodolite.measure.propagation import path_gains


def deep(depth=20, width=128, activation=nn.ReLU):
    layers = [m for _ in range(depth) for m in (nn.Linear(width, width), activation())]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def statuses(model, quantity, **facts):
    return [
        r.status for r in th.read("initialization", model, **facts) if quantity in r.quantity and r.where != "0.weight"
    ]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def test_the_default_of_pytorch_is_below_and_criticality_agrees():
    model = deep(width=256)  # each C_w is known to 0.6 %, within a band of 5 %
    assert set(statuses(model, "C_w")) == {"below"}
    assert statuses(model, "depth scale") == ["below"]
    th.initialize_(model, "relu", generator=torch.Generator().manual_seed(0))
    assert set(statuses(model, "C_w")) <= {"agrees", "inconclusive"}
    assert statuses(model, "C_w").count("agrees") >= 18
    assert statuses(model, "depth scale") == ["agrees"]


def test_too_large_weights_are_above():
    model = deep()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(4)
    assert set(statuses(model, "C_w")) == {"above"}


def test_the_activation_is_seen_in_the_forward_pass():
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)

        def forward(self, x):
            return self.c(torch.nn.functional.gelu(self.b(torch.tanh(self.a(x))), approximate="tanh"))

    subject = th.Subject(Functional(), data=torch.randn(16, 8))
    fed = [layer.activation and layer.activation.name for layer in layers_of(subject)]
    assert fed[:2] == [None, "tanh"]
    assert "gelu" in fed[2]
    assert th.criticality(layers_of(subject)[2].activation).kind == "half-stable"


def test_a_normalization_between_is_said():
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))
    (last,) = [
        r
        for r in th.read("initialization", model, data=torch.randn(16, 8))
        if r.where == "3.weight" and "C_w" in r.quantity
    ]
    assert last.status == "no reference"
    assert "norm" in last.meaning


def test_a_checkpoint_without_a_name_for_its_activation_has_no_reference(tmp_path):
    torch.save(deep(2).state_dict(), tmp_path / "m.pt")
    assert {r.status for r in th.read("initialization", tmp_path / "m.pt")} == {"no reference"}
    named = th.read("initialization", tmp_path / "m.pt", activation="relu")
    assert "below" in {r.status for r in named}


def test_weights_from_before_training_are_read_where_they_are_known():
    model = deep(3)
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        model[2].weight.mul_(3)
    now = {r.where: r.measured for r in th.read("initialization", model) if "C_w" in r.quantity}
    then = {r.where: r.measured for r in th.read("initialization", model, origin=start) if "C_w" in r.quantity}
    assert now["2.weight"] == pytest.approx(9 * then["2.weight"], rel=1e-5)


def test_an_activation_without_criticality_is_explained():
    readings = th.read("initialization", deep(2, activation=nn.Sigmoid), data=torch.randn(8, 128))
    assert any("never both 1" in r.meaning for r in readings)


def stack(seed, *, depth, width=48, activation=nn.Tanh):
    generator = torch.Generator().manual_seed(seed)
    hidden = [layer for _ in range(depth) for layer in (nn.Linear(width, width), activation())]
    model = nn.Sequential(*hidden, nn.Linear(width, 10))
    with torch.no_grad():
        for layer in model[::2]:
            layer.weight.normal_(0, ((1 + (activation is nn.ReLU)) / width) ** 0.5, generator=generator)
            layer.bias.zero_()
    return model, torch.randn(64, width, generator=generator)


def test_an_untrained_network_of_200_layers_is_left_alone():
    """Seven quantities of 200 layers each, every family left alone at 98 %."""
    model, x = stack(0, depth=200, activation=nn.ReLU)
    found = [r for name in ("rank", "signal", "initialization") for r in th.read(name, model, data=x)]
    assert len(found) > 1000
    assert [r for r in found if r.alarming or r.status == "not random"] == []


def test_trained_weights_have_left_the_initialization_and_that_is_no_alarm():
    model, _ = stack(0, depth=6)
    with torch.no_grad():
        for layer in model[::2]:
            layer.weight.mul_(1.6)
    assert {"above"} <= set(statuses(model, "C_w"))
    with torch.no_grad():
        for layer in model[::2]:  # a direction that no initialization draws
            layer.weight.add_(
                1.5
                * torch.outer(*(torch.nn.functional.normalize(v, dim=0) for v in (layer.weight[:, 0], layer.weight[0])))
            )
    found = [r for r in th.read("initialization", model) if r.expected is not None]
    assert {r.against for r in found} == {"chance"}
    assert not any(r.alarming for r in found)
    assert "not random" in {r.status for r in found}
    with_origin = th.read("initialization", model, origin=stack(0, depth=6)[0])
    assert {r.against for r in with_origin} == {"health"}


def drawn(seed=0):
    return torch.Generator().manual_seed(seed)


def test_prenorm_layers_get_no_power_of_the_depth_but_the_gain_of_their_path():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True, activation="gelu")
    model = nn.Sequential(
        nn.Linear(4, 16), nn.TransformerEncoder(layer, 9, enable_nested_tensor=False), nn.Linear(16, 3)
    )
    x = torch.randn(12, 5, 4, generator=drawn())
    readings = th.read("initialization", model, data=x)
    assert all(r.expected is None for r in readings)
    assert not any("depth scale" in r.quantity or "changes by a factor" in r.meaning for r in readings)
    (gain,) = [r for r in th.read("signal", model, data=x) if "gain" in r.quantity]
    assert 0.1 < gain.measured < 10


def test_a_linear_path_has_relative_gain_one_on_average():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False))
    nn.init.orthogonal_(model[1].weight)
    x = torch.randn(8, 64, generator=drawn())
    gains = path_gains(lambda: model(x), model[0], torch.randn(3, 64, generator=drawn(1)))
    rms = model[0](x).norm(dim=1).square().mean().sqrt()
    assert torch.allclose(gains * model[0](x).norm(dim=1), rms.expand(3, 8).to(gains), rtol=1e-3)
