"""Every ailment of the network: found in its sick examples, silent in its healthy ones, and nothing of the user's changed."""

import contextlib
import copy
import importlib

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import theodolite as th
from theodolite.ailments._common import examples as make
from theodolite.ailments._common.chart import Chart

NAMES = (
    "signal_vanishes",
    "signal_explodes",
    "gradient_vanishes",
    "gradient_explodes",
    "inputs_merge",
    "units_alike",
    "units_dead",
    "units_saturated",
    "outputs_squashed",
    "loss_mismatched",
    "layer_cut_off",
    "too_narrow",
    "rank_lost",
)
AILMENTS = {name: importlib.import_module(f"theodolite.ailments.{name}").ailment for name in NAMES}
SICK, HEALTHY = (
    [pytest.param(name, case, id=f"{name}-{case.__name__}") for name in NAMES for case in AILMENTS[name].examples[kind]]
    for kind in ("sick", "healthy")
)


def alarms(chart, names=NAMES):
    found = {}
    for name in names:
        ailment = AILMENTS[name]
        if all(chart.has(need) for need in ailment.needs):
            found[name] = [finding for finding in ailment.judge(chart) if finding.severity != "note"]
    return {name: findings for name, findings in found.items() if findings}


@contextlib.contextmanager
def unchanged(model, optimizer):
    """Nothing of the user's is changed inside."""
    before = {key: value.clone() for key, value in model.state_dict().items()}
    state, modes = copy.deepcopy(optimizer.state_dict()), [m.training for m in model.modules()]
    torch.manual_seed(5)
    random = torch.get_rng_state()
    yield
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert optimizer.state_dict() == state
    assert modes == [m.training for m in model.modules()]
    assert all(p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks for m in model.modules())


@pytest.mark.parametrize(("name", "case"), SICK)
def test_the_sick_are_found_with_numbers_and_a_remedy_and_not_touched(name, case):
    for seed in (0, 1):
        given = case(seed)
        with unchanged(given["model"], given["optimizer"]):
            found = alarms(Chart(**given), (name,))
        assert found, f"{name} was not found with seed {seed}"
        (finding,) = found[name]
        assert any(sign.isdigit() for sign in finding.says)
        assert finding.remedy


@pytest.mark.parametrize(("name", "case"), HEALTHY)
def test_the_healthy_are_left_alone_and_not_touched(name, case):
    for seed in (0, 1, 2):
        given = case(seed)
        with unchanged(given["model"], given["optimizer"]):
            assert not alarms(Chart(**given), (name,))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTM(4, 24, batch_first=True), nn.Linear(24, make.CLASSES)

    def forward(self, x):
        return self.head(self.cell(x.view(len(x), 4, 4))[0][:, -1])


class Encoder(nn.Module):
    def __init__(self, *, causal=False):
        super().__init__()
        self.embed = nn.Linear(4, 16)
        self.places = nn.Parameter(0.1 * torch.randn(4, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head, self.causal = nn.LayerNorm(16), nn.Linear(16, make.CLASSES), causal

    def forward(self, x):
        x = self.embed(x.view(len(x), 4, 4)) + self.places
        mask = nn.Transformer.generate_square_subsequent_mask(4) if self.causal else None
        return self.head(self.norm(self.blocks(x, mask=mask)).mean(1))


def convolutions(norm):
    def layer(inputs, outputs):
        return [
            nn.Conv2d(inputs, outputs, 3, padding=1),
            *([nn.BatchNorm2d(outputs)] if norm else []),
            nn.ReLU(inplace=True),
        ]

    return nn.Sequential(
        nn.Unflatten(1, (1, 4, 4)), *layer(1, 12), *layer(12, 12), nn.Flatten(), nn.Linear(192, make.CLASSES)
    )


def frozen():
    model = make.stack(2)
    model[0].requires_grad_(False)
    return model


def coder():
    return nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10), nn.ReLU(), nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16)
    )


def points(seed):
    x, _ = make.classes(seed)
    return x, x


PATIENTS = {
    "mlp": lambda seed: make.digits_like(seed, lambda: make.stack(2), lr=3e-3),
    "mlp with momentum": lambda seed: make.digits_like(seed, lambda: make.stack(2), optimizer="sgd", lr=0.02),
    "tanh": lambda seed: make.digits_like(seed, lambda: make.stack(3, activation=nn.Tanh), lr=3e-3),
    "dropout": lambda seed: make.digits_like(
        seed, lambda: nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Dropout(0.3), nn.Linear(48, 4)), lr=3e-3
    ),
    "cnn": lambda seed: make.digits_like(seed, lambda: convolutions(False), lr=3e-3),
    "cnn with norms": lambda seed: make.digits_like(seed, lambda: convolutions(True), lr=3e-3),
    "residual": lambda seed: make.digits_like(seed, lambda: make.residual(4), lr=1e-3),
    "encoder": lambda seed: make.digits_like(seed, Encoder, lr=3e-3),
    "decoder": lambda seed: make.digits_like(seed, lambda: Encoder(causal=True), lr=3e-3),
    "lstm": lambda seed: make.digits_like(seed, Recurrent, lr=5e-3),
    "frozen": lambda seed: make.digits_like(seed, frozen, lr=3e-3),
    "regression": lambda seed: make.number_like(
        seed,
        lambda: nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)),
        lr=3e-3,
    ),
    "autoencoder": lambda seed: make.patient(make.seeded(seed, coder), points(seed), loss=F.mse_loss, lr=3e-3),
}


def trained(given, steps):
    model, optimizer = given["model"].train(), given["optimizer"]
    for step in range(steps):
        x, y = given["data"][step % len(given["data"])]
        optimizer.zero_grad()
        given["loss"](model(x), y).backward()
        optimizer.step()


@pytest.mark.parametrize("name", PATIENTS)
def test_healthy_networks_get_no_alarm_fresh_half_trained_and_trained(name):
    given = PATIENTS[name](0)
    torch.manual_seed(0)
    origin = {key: value.clone() for key, value in given["model"].state_dict().items()}
    said = {"fresh": alarms(Chart(**given))}
    trained(given, 60)
    said["half"] = alarms(Chart(**given, origin=origin))
    trained(given, 240)
    said["trained"] = alarms(Chart(**given, origin=origin, steps=300))
    said["trained, start unknown"] = alarms(Chart(**given))
    assert not any(said.values()), said


def test_a_merged_stack_is_named_and_a_layer_norm_behind_does_not_hide_it():
    def deep():
        return nn.Sequential(*make.stack(30, activation=nn.GELU)[:-1], nn.LayerNorm(32), nn.Linear(32, 4))

    assert "inputs_merge" in alarms(Chart(**make.digits_like(0, deep, lr=1e-3)))


def test_a_batch_norm_behind_every_layer_keeps_inputs_apart():
    def deep():
        layers = [part for _ in range(6) for part in (nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU())]
        return nn.Sequential(nn.Linear(16, 32), *layers, nn.Linear(32, 4))

    assert not alarms(Chart(**make.digits_like(0, deep, lr=1e-3)))


def test_an_unused_branch_is_a_note_and_a_frozen_feature_extractor_is_nothing():
    class Probe(nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.head, self.unused = nn.Linear(16, 32), nn.Linear(32, 4), nn.Linear(3, 3)

        def forward(self, x):
            with torch.no_grad():
                z = self.features(x).relu()
            return self.head(z)

    given = make.digits_like(0, Probe)
    judge = AILMENTS["layer_cut_off"].judge
    (finding,) = judge(Chart(**given))
    assert finding.severity == "critical"
    assert "features.weight" in finding.says
    given["optimizer"] = torch.optim.Adam(given["model"].head.parameters())
    assert not list(judge(Chart(**given)))
    given["optimizer"] = torch.optim.Adam([*given["model"].head.parameters(), *given["model"].unused.parameters()])
    (finding,) = judge(Chart(**given))
    assert finding.severity == "note"


def test_no_ailment_of_the_network_explains_its_own_cause():
    explains = {name.replace("_", "-"): AILMENTS[name].explains for name in NAMES}
    for name in explains:
        waiting, reached = list(explains[name]), set()
        while waiting:
            follower = waiting.pop()
            if follower not in reached:
                reached.add(follower)
                waiting += explains.get(follower, ())
        assert name not in reached


def test_where_no_remedy_could_be_tried_that_of_theory_is_given():
    torch.manual_seed(0)
    layers = [part for _ in range(20) for part in (nn.Linear(32, 32), nn.Tanh())]
    x, y = torch.randn(256, 32), torch.randint(0, 4, (256,))
    found = th.diagnose(nn.Sequential(*layers, nn.Linear(32, 4)), data=(x, y), loss=F.cross_entropy).findings
    merged = next(finding for finding in found if finding.name == "inputs-merge")
    assert merged.remedy == 'th.initialize_(model, "tanh")' and "steps" not in merged.says
