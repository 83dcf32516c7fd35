"""Programs as people write them, trained to their end and then diagnosed with nothing told of their past."""

import itertools

import pytest
import torch
from sklearn.datasets import load_diabetes, load_digits, load_iris, make_circles
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import theodolite as th
from theodolite.core import budget


@pytest.fixture(autouse=True)
def seconds_of_the_processor(monkeypatch):
    """A busy machine must not shorten trials, and with them change what is found."""
    monkeypatch.setattr(budget.time, "perf_counter", budget.time.process_time)


def stack(*widths, activation=nn.ReLU, last=None):
    parts = []
    for i, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
        parts += [nn.Linear(inputs, outputs)] + ([activation()] if i < len(widths) - 2 and activation else [])
    return nn.Sequential(*parts, *([last] if last else []))


def digits():
    x, y = load_digits(return_X_y=True)
    return torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)


def circles():
    x, y = make_circles(500, noise=0.05, factor=0.5, random_state=0)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None]


def softmax_of_one_number():
    return stack(2, 16, 16, 1, last=nn.Softmax(dim=1)), circles(), nn.BCELoss(), ("Adam", 1e-3), 20


def sigmoid_asked_for_hundreds():
    x, y = load_diabetes(return_X_y=True)
    data = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None]
    return stack(10, 32, 1, last=nn.Sigmoid()), data, nn.MSELoss(), ("Adam", 1e-3), 20


def prices_and_areas_in_their_own_units():
    generator = torch.Generator().manual_seed(0)
    scales, offsets = torch.tensor([1.0, 10, 5, 1, 1000, 3, 50, 100]), torch.tensor([4.0, 28, 5, 1, 1400, 3, 35, -119])
    x = scales * torch.randn(1000, 8, generator=generator) + offsets
    y = 2e5 + 2e4 * x[:, :1] + 3e4 * x[:, 2:3] + 5e4 * torch.randn(1000, 1, generator=generator)
    return stack(8, 64, 64, 1), (x, y), nn.MSELoss(), ("Adam", 1e-3), 20


def no_activation_anywhere():
    return stack(2, 32, 1, activation=None, last=nn.Sigmoid()), circles(), nn.BCELoss(), ("Adam", 1e-2), 30


def squares_of_classes():
    x, y = digits()
    marks = nn.functional.one_hot(y, 10).float()
    return stack(64, 32, 10, last=nn.Sigmoid()), (x, marks), nn.MSELoss(), ("SGD", 0.01), 10


def a_step_of_three():
    return stack(64, 64, 10), digits(), nn.CrossEntropyLoss(), ("SGD", 3.0), 10


def three_epochs_of_iris():
    x, y = load_iris(return_X_y=True)
    return (
        stack(4, 8, 3),
        (torch.tensor(x, dtype=torch.float32), torch.tensor(y)),
        nn.CrossEntropyLoss(),
        ("SGD", 0.01),
        3,
    )


def healthy_digits():
    return stack(64, 64, 10), digits(), nn.CrossEntropyLoss(), ("SGD", 0.1), 30


def healthy_regression():
    x, y = load_diabetes(return_X_y=True)
    x, y = torch.tensor(x / x.std(0), dtype=torch.float32), torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
    return stack(10, 16, 1), (x, y[:, None]), nn.MSELoss(), ("Adam", 1e-3), 10


PROGRAMS = {
    softmax_of_one_number: "outputs-squashed",
    sigmoid_asked_for_hundreds: "outputs-squashed",
    prices_and_areas_in_their_own_units: "inputs-not-scaled",  # scaled, and at their own best step, 94 % comes back
    no_activation_anywhere: "too-narrow",
    squares_of_classes: "loss-mismatched",
    a_step_of_three: "units-dead",  # plain descent leaves no trace of its past: what is seen is what it left
    three_epochs_of_iris: None,  # the same: a run that nobody told of may have been as long as it was meant to be
    healthy_digits: None,
    healthy_regression: None,
}


@pytest.mark.parametrize(("program", "ailment"), PROGRAMS.items(), ids=[p.__name__ for p in PROGRAMS])
def test_the_cause_comes_first(program, ailment):
    torch.manual_seed(0)
    model, (x, y), loss, (kind, lr), epochs = program()
    order, held_out = torch.randperm(len(x)), len(x) // 5
    rest, kept = order[held_out:], order[:held_out]
    data = DataLoader(TensorDataset(x[rest], y[rest]), batch_size=32, shuffle=True)
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=lr)
    for _ in range(epochs):
        for inputs, targets in data:
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
    found = th.diagnose(model, data=data, loss=loss, optimizer=optimizer, validation=(x[kept], y[kept]))
    assert found.healthy == (ailment is None), found.headline
    assert ailment is None or found.findings[0].name == ailment, found.headline


def test_an_untrained_network_is_not_called_trained():
    x, y = digits()
    torch.manual_seed(0)
    model = stack(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = th.diagnose(model, data=(x, y), loss=nn.CrossEntropyLoss(), optimizer=optimizer)
    assert found.healthy
    assert "othing has been learned yet" in found.headline
