"""A recurrent network goes sample by sample: its kernel is of as many as its time allows."""

import math

import torch
from torch import nn

import theodolite as th
from theodolite.core.budget import Allowance
from theodolite.instruments._common.kernel_price import kernel_samples
from theodolite.instruments._common.samples import spread_samples


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn, self.head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.turn(x)[0][:, -1])


def subject_of(model, x):
    return th.Subject(model, data=(x, torch.zeros(len(x), dtype=torch.long)), loss=nn.functional.cross_entropy)


def test_a_model_that_does_not_vectorize_gets_what_its_time_allows():
    torch.manual_seed(0)
    subject = subject_of(Recurrent(), torch.randn(32, 5, 4))
    few = spread_samples(subject, 2)
    counts = [kernel_samples(subject.within(Allowance(seconds)), few, 3, fewest=6) for seconds in (1e-6, 100.0)]
    assert counts[0] == 6
    assert 6 < counts[1] < math.inf


def test_time_without_end_and_layers_that_vectorize_set_no_limit():
    subject = subject_of(Recurrent(), torch.randn(8, 5, 4))
    assert kernel_samples(subject, spread_samples(subject, 2), 3, fewest=6) == math.inf
    plain = subject_of(nn.Linear(4, 3), torch.randn(8, 4)).within(Allowance(1.0))
    assert kernel_samples(plain, spread_samples(plain, 2), 3, fewest=6) == math.inf
