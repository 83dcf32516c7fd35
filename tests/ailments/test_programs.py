"""Small programs as people write them, diagnosed by the plain call: before training, or after it with the start not known."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import theodolite as th
from theodolite.ailments._common.fit import constant_loss, labels_of

LINEAR, RELU = nn.Linear, nn.ReLU


def rings(samples=640):
    """Two rings, told apart by a number 0 or 1."""
    g = torch.Generator().manual_seed(0)
    y = (torch.rand(samples, generator=g) > 0.5).float()
    angle = 6.28 * torch.rand(samples, generator=g)
    radius = 1 + y + 0.1 * torch.randn(samples, generator=g)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), y


def clouds(samples=640):
    """Four clouds with whole numbers for classes."""
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 4, (samples,), generator=g)
    return 2 * torch.randn(4, 8, generator=g)[y] + torch.randn(samples, 8, generator=g), y


def on_rows(loss):
    return lambda output, target: loss(output.squeeze(-1), target)


def diagnosed(model, data, loss, optimizer, *, epochs=0):
    loader = DataLoader(TensorDataset(*data), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(0))
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
    found = th.diagnose(model, data=loader, loss=loss, optimizer=optimizer, validation=data)
    return [finding.name for finding in found.findings if finding.severity != "note"]


def network(*layers):
    torch.manual_seed(0)
    return nn.Sequential(*(make() for make in layers))


RING = (lambda: LINEAR(2, 32), RELU, lambda: LINEAR(32, 32), RELU, lambda: LINEAR(32, 1))
CLOUD = (lambda: LINEAR(8, 32), RELU, lambda: LINEAR(32, 4))


@pytest.mark.parametrize("epochs", [0, 5])
def test_a_sigmoid_with_its_own_loss_is_healthy(epochs):
    model = network(*RING, nn.Sigmoid)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    assert diagnosed(model, rings(), on_rows(F.binary_cross_entropy), optimizer, epochs=epochs) == []


@pytest.mark.parametrize("epochs", [0, 5])
def test_a_softmax_of_one_output_is_constant(epochs):
    model = network(*RING, lambda: nn.Softmax(1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    found = diagnosed(model, rings(), on_rows(F.binary_cross_entropy), optimizer, epochs=epochs)
    assert found[0] == "outputs-squashed"


@pytest.mark.parametrize("last", [(), (lambda: nn.Softmax(1),)])
def test_a_log_likelihood_without_its_logarithm(last):
    model = network(*CLOUD, *last)
    found = diagnosed(model, clouds(), F.nll_loss, torch.optim.Adam(model.parameters(), 1e-2))
    assert found[0] == "loss-mismatched"


def test_a_log_likelihood_behind_log_softmax_is_healthy():
    model = network(*CLOUD, lambda: nn.LogSoftmax(1))
    assert diagnosed(model, clouds(), F.nll_loss, torch.optim.Adam(model.parameters(), 1e-2)) == []


def test_squares_of_probabilities_with_one_hot_targets():
    model = network(*CLOUD, lambda: nn.Softmax(1))
    x, y = clouds()
    found = diagnosed(model, (x, F.one_hot(y, 4).float()), F.mse_loss, torch.optim.SGD(model.parameters(), 0.02))
    assert found[0] == "loss-mismatched"


@pytest.mark.parametrize("epochs", [0, 5])
def test_layers_without_an_activation_between_them(epochs):
    model = network(lambda: LINEAR(2, 32), lambda: LINEAR(32, 32), lambda: LINEAR(32, 1), nn.Sigmoid)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    found = diagnosed(model, rings(), on_rows(F.binary_cross_entropy), optimizer, epochs=epochs)
    assert found[0] == "too-narrow"


def test_a_run_ruined_by_its_step_whose_start_is_not_known():
    model = network(*CLOUD)
    found = diagnosed(model, clouds(), F.cross_entropy, torch.optim.SGD(model.parameters(), 30.0), epochs=3)
    assert found[0] == "step-too-large"


def test_a_run_of_adam_ruined_by_its_step_whose_start_is_not_known():
    model = network(*RING, nn.Sigmoid)
    optimizer = torch.optim.Adam(model.parameters(), 1.0)
    found = diagnosed(model, rings(), on_rows(F.binary_cross_entropy), optimizer, epochs=5)
    assert found[0] == "step-too-large"


def test_a_run_that_was_too_short_whose_start_is_not_known():
    model = network(lambda: LINEAR(2, 64), RELU, lambda: LINEAR(64, 64), RELU, lambda: LINEAR(64, 1))
    loss = on_rows(F.binary_cross_entropy_with_logits)
    found = diagnosed(model, rings(), loss, torch.optim.Adam(model.parameters(), 1e-3), epochs=2)
    assert found[0] == "trained-too-short"


def test_the_best_constant_probability_is_the_share():
    model, (x, y) = network(*RING, nn.Sigmoid), rings()
    batches = [type("Batch", (), {"target": y, "__len__": lambda self: len(y)})()]
    found = constant_loss(model, lambda m, b: m(x).squeeze(-1), F.binary_cross_entropy, batches)
    share = y.mean()
    assert found == pytest.approx(float(F.binary_cross_entropy(share.expand(len(y)), y)), rel=1e-4)


def test_a_loss_that_falls_without_end_has_no_best_constant_answer():
    model, (x, y) = network(*CLOUD), clouds()
    batches = [type("Batch", (), {"target": y, "__len__": lambda self: len(y)})()]
    found = constant_loss(model, lambda m, b: m(x), F.nll_loss, batches)
    assert found != found


def test_classes_are_told_from_numbers():
    assert labels_of(torch.tensor([[0.0], [1.0]])).tolist() == [0, 1]
    assert labels_of(torch.tensor([[1.0, 1.0], [0.0, 1.0]])) is None  # several at once
    assert labels_of(torch.tensor([0.0, 2.0])) is None


def test_a_watch_of_answers_that_are_not_finite_tells_why():
    model, (x, y) = network(*CLOUD), clouds()
    x = x.clone()
    x[3, 1] = float("nan")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    watch = th.Watch(model, probe=(x, y), optimizer=optimizer, loss=F.cross_entropy, every=1)
    for step in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        watch(step)
    assert watch.diagnosis.findings[0].name == "inputs-not-finite"


@pytest.mark.parametrize("last", [lambda: nn.Softmax(1), nn.Sigmoid])
def test_a_squash_before_cross_entropy_is_the_fault_of_the_outputs_not_of_the_loss(last):
    """It was once said of a softmax before F.cross_entropy that the loss is wrong, and to type F.cross_entropy."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    model = network(lambda: LINEAR(64, 64), RELU, lambda: LINEAR(64, 10), last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(8):
        for rows in torch.randperm(1400, generator=torch.Generator().manual_seed(epoch)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    found = th.diagnose(
        model, data=(x[:1400], y[:1400]), loss=F.cross_entropy, optimizer=optimizer, validation=(x[1400:], y[1400:])
    )
    assert found.findings[0].name == "outputs-squashed" and "remove" in found.findings[0].remedy


def test_dead_units_are_not_taken_for_noise_of_batches():
    """Trials from weights drawn anew come down with any batches: those of the run are not why it stands still."""
    model = network(lambda: LINEAR(8, 64), RELU, lambda: LINEAR(64, 64), RELU, lambda: LINEAR(64, 4))
    with torch.no_grad():
        model[0].bias.fill_(-20.0)
    found = diagnosed(model, clouds(), F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.05), epochs=8)
    assert found[0] == "units-dead" and "batch-noise" not in found
