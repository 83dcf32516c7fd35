"""Networks of which everybody knows what is wrong with them are named as such, and well trained ones get no alarm."""

import time

import pytest
import torch
from sklearn.datasets import load_digits, make_friedman1
from torch import nn

import theodolite as th

CROSS_ENTROPY = nn.functional.cross_entropy


@pytest.fixture(autouse=True)
def seconds_of_the_processor(monkeypatch):
    """A busy machine must not shorten trials, and with them change what is found."""
    monkeypatch.setattr(time, "perf_counter", time.process_time)


def digits(scale=1 / 16):
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = torch.tensor(x, dtype=torch.float32)[order] * scale, torch.tensor(y)[order]
    return (x[:1200], y[:1200]), (x[1200:], y[1200:])


def layers(depth, width=64, activation=nn.ReLU, inputs=64, outputs=10):
    parts = [nn.Linear(inputs, width), activation()]
    for _ in range(depth - 2):
        parts += [nn.Linear(width, width), activation()]
    return nn.Sequential(*parts, nn.Linear(width, outputs))


def trained(model, optimizer, data, held_out, *, loss=CROSS_ENTROPY, steps=300):
    """A run as a script makes it, with its diagnosis at the end."""
    x, y = data
    generator = torch.Generator().manual_seed(1)
    batches = [torch.randint(len(x), (64,), generator=generator) for _ in range(steps)]
    probe = [(x[rows], y[rows]) for rows in batches[:24]]
    watch = th.Watch(
        model, optimizer=optimizer, probe=probe, loss=loss, validation=held_out, every=steps // 8, level="cheap"
    )
    for step, rows in enumerate(batches):
        optimizer.zero_grad()
        loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
        watch(step)
    return watch.diagnosis


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.inner = (
            nn.LayerNorm(width),
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)),
        )

    def forward(self, x):
        return x + self.inner(self.norm(x))


def adam(model, lr=1e-3):
    return torch.optim.Adam(model.parameters(), lr)


def relu_mlp():
    model = layers(3)
    return model, adam(model), digits(), CROSS_ENTROPY


def tanh_with_momentum():
    model = layers(3, activation=nn.Tanh)
    return model, torch.optim.SGD(model.parameters(), 0.05, momentum=0.9), digits(), CROSS_ENTROPY


def convolutions_with_batch_norm():
    model = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, 10)),
    )
    return model, adam(model, 3e-3), digits(), CROSS_ENTROPY


def residual():
    model = nn.Sequential(nn.Linear(64, 64), *(Residual(64) for _ in range(4)), nn.LayerNorm(64), nn.Linear(64, 10))
    return model, torch.optim.AdamW(model.parameters(), 1e-3), digits(), CROSS_ENTROPY


def with_dropout():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
    return model, adam(model, 2e-3), digits(), CROSS_ENTROPY


def regression():
    x, y = (torch.tensor(part, dtype=torch.float32) for part in make_friedman1(1500, random_state=0, noise=0.5))
    x, y = (x - x.mean(0)) / x.std(0), ((y - y.mean()) / y.std()).unsqueeze(1)
    model = layers(3, inputs=10, outputs=1)
    return model, adam(model, 2e-3), ((x[:1200], y[:1200]), (x[1200:], y[1200:])), nn.functional.mse_loss


@pytest.mark.parametrize(
    "make", [relu_mlp, tanh_with_momentum, convolutions_with_batch_norm, residual, with_dropout, regression]
)
def test_a_well_trained_network_gets_no_alarm(make):
    torch.manual_seed(0)
    model, optimizer, (data, held_out), loss = make()
    found = trained(model, optimizer, data, held_out, loss=loss)
    assert found.healthy, found.headline


def merged_gelu_stack():
    model = layers(16, width=32, activation=nn.GELU)
    return model, adam(model), digits()


def dead_mlp():
    model = layers(4)
    with torch.no_grad():
        for layer in (model[0], model[2], model[4]):
            layer.bias.fill_(-30.0)
    return model, adam(model), digits()


def random_labels():
    (x, y), (other, z) = digits()
    generator = torch.Generator().manual_seed(2)
    y, z = y[torch.randperm(len(y), generator=generator)], z[torch.randperm(len(z), generator=generator)]
    model = layers(3, width=256)
    return model, adam(model), ((x[:400], y[:400]), (other, z))


def inputs_to_255():
    model = layers(3)
    return model, torch.optim.SGD(model.parameters(), 0.02), digits(scale=255 / 16)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (merged_gelu_stack, {"inputs-merge", "signal-vanishes"}),
        (dead_mlp, {"units-dead"}),
        (random_labels, {"labels-unrelated", "memorises-noise"}),
        (inputs_to_255, {"inputs-not-scaled"}),
    ],
)
def test_what_is_wrong_is_named_first(make, names):
    torch.manual_seed(0)
    model, optimizer, (data, held_out) = make()
    found = trained(model, optimizer, data, held_out)
    assert not found.healthy
    assert found.findings[0].name in names, [(finding.name, finding.says) for finding in found.findings]


def test_a_merged_stack_is_named_before_training_too():
    torch.manual_seed(0)
    model, optimizer, (data, held_out) = merged_gelu_stack()
    found = th.diagnose(model, data=data, loss=CROSS_ENTROPY, optimizer=optimizer, validation=held_out)
    assert found.findings[0].name in {"inputs-merge", "signal-vanishes"}
    assert "inputs-merge" in (found.findings[0].name, *found.findings[0].leads_to)
