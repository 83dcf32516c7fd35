"""A run that still falls is said to drift; one at rest balances pull and noise."""

import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.core.reading import Estimate
from theodolite.instruments.stationarity import balance_meaning, drifting


@pytest.mark.parametrize(
    ("value", "stderr", "word"),
    [(1.0, 0.01, "balance: SGD is stationary"), (2.0, 0.1, "contract"), (0.3, 0.1, "spread"), (1.0, 0.5, "too short")],
)
def test_a_ratio_means_what_its_interval_says(value, stderr, word):
    assert word in balance_meaning(Estimate(value, stderr))


def test_a_change_within_three_errors_is_none():
    assert not drifting(Estimate(0.29, 0.1)) and drifting(Estimate(-0.31, 0.1))


def linear(start):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 4, generator=generator)
    y = x.sum(1, keepdim=True) + 0.5 * torch.randn(256, 1, generator=generator)
    model = nn.Linear(4, 1, bias=False)
    nn.init.constant_(model.weight, start)
    return th.Subject(model, data=(x, y), loss=nn.functional.mse_loss, lr=0.1 if start == 1 else 1e-4)


def test_far_from_the_minimum_a_small_step_drifts_and_at_it_pull_and_noise_balance():
    (only,) = th.read("stationarity", linear(start=-5.0))
    assert only.measured < 0 and "not stationary" in only.meaning
    rest = {reading.quantity: reading for reading in th.read("stationarity", linear(start=1.0))}
    (balance,) = [r for q, r in rest.items() if q.startswith("pull of the loss")]
    assert abs(balance.measured - 1) < 4 * balance.stderr
