"""Work is counted: prices do not depend on the clock, and the limit of the clock is said."""

from functools import partial

import pytest
import torch
from torch import nn

from theodolite.core.budget import OutOfTimeError
from theodolite.evidence.work import Price, Work, counted_price


def priced(width, samples=32):
    model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 2))
    x = torch.randn(samples, 8)
    return counted_price(model, lambda: model(x), samples)


def test_a_price_is_the_same_each_time_and_grows_with_the_network():
    assert priced(64) == priced(64)
    assert priced(512).sample > 4 * priced(64).sample
    assert priced(64).step(64) > priced(64).step(32) > priced(64).forward(32)


def test_a_model_that_refuses_to_be_counted_is_priced_by_its_size():
    def broken():
        raise RuntimeError("no")

    assert counted_price(nn.Linear(100, 100), broken, 4).sample > 0


def test_a_recurrent_layer_costs_its_weights_at_every_place_although_it_is_one_operation():
    layer = nn.LSTM(8, 64, batch_first=True)
    inputs = torch.zeros(4, 10, 8), torch.zeros(4, 40, 8)
    short, long = (counted_price(layer, partial(layer, x), 4).sample for x in inputs)
    assert long > 3 * short > 3 * 2 * 10 * 4 * 64 * (64 + 8) / 2e10


def test_what_is_spent_is_gone_and_the_clock_ends_it():
    work = Work(2.0)
    work.spend(1.5)
    assert work.left == 0.5
    with pytest.raises(OutOfTimeError):
        Work(2.0, limit=-1.0).spend(0.1)
    assert Price(1.0, 0.5).forward(4) == 3.0
    assert Price(1.0, 0.5, overlaps=True).forward(4) == 2.0 and Price(1.0, 0.5, overlaps=True).forward(1) == 1.0
