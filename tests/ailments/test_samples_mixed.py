"""Does the answer to one sample depend on the other samples in its batch?"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms


class Reads(nn.Module):
    """A recurrent network that reads sequences of shape (samples, time, features)."""

    def __init__(self, batch_first):
        super().__init__()
        self.rnn, self.head = nn.GRU(4, 24, batch_first=batch_first), nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


class Normalized(nn.Module):
    """A network with batch normalization, which mixes samples in training alone."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(24, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.body(x)


class Draws(nn.Module):
    """A network that draws at random in evaluation too, and learns nothing for it."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(24, 3)

    def forward(self, x):
        return self.body(x.flatten(1)) + 100 * torch.randn(len(x), 3)


def given(model, steps=120):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (600,), generator=g)
    x = torch.randn(600, 6, 4, generator=g)
    x[torch.arange(600), 0, y] += 4.0
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    batches = list(zip(x.split(30), y.split(30), strict=True))
    for step in range(steps):
        optimizer.zero_grad()
        inputs, labels = batches[step % len(batches)]
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return {"model": model, "data": batches, "loss": F.cross_entropy, "optimizer": optimizer, "steps": steps}


SICK = (lambda seed: given(Reads(False), steps=60),)


def test_a_recurrence_over_the_batch_is_found_and_turned_round():
    torch.manual_seed(0)
    found = alarms("samples-mixed", given(Reads(False), steps=60))
    assert found[0].suggested == {"batch_first": True}
    assert found[0].where == "rnn"


@pytest.mark.parametrize("build", [lambda: Reads(True), Normalized, Draws])
def test_the_healthy_are_left_alone(build):
    torch.manual_seed(0)
    assert not alarms("samples-mixed", given(build()))
