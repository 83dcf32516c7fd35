"""SGD balances where it is stationary, and drifts where it is not."""

import numpy as np
import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.measure.dynamics import Sgd, block_ratio, block_trend, sgd_run


def half_square(z, t):
    return (z - t).square().mean() / 2


def regression(noise=1.0):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 4, generator=generator)
    y = x.sum(1, keepdim=True) + noise * torch.randn(200, 1, generator=generator)
    model = nn.Linear(4, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.linalg.lstsq(x, y).solution.T)
    return model, (x, y)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_sgd_on_a_regression_with_noise_is_stationary(momentum):
    model, data = regression()
    before = model.weight.detach().clone()
    trend, balance = th.read("stationarity", model, data=data, loss=half_square, lr=0.15, momentum=momentum)
    assert "neither falls nor rises" in trend.meaning
    assert abs(balance.measured - 1) < 3 * balance.stderr
    assert balance.status in ("agrees", "inconclusive")
    assert torch.equal(model.weight, before)


def test_a_start_far_away_drifts_and_nothing_is_said_of_balance():
    model, data = regression()
    nn.init.constant_(model.weight, 30.0)
    readings = th.read("stationarity", model, data=data, loss=half_square, lr=1e-3)
    assert len(readings) == 1
    assert readings[0].status == "not random"
    assert "not stationary" in readings[0].meaning


def test_a_step_that_runs_away_is_refused():
    model, data = regression()
    with pytest.raises(ValueError, match="ran away"):
        th.read("stationarity", model, data=data, loss=half_square, lr=50.0)


def test_a_run_that_would_take_too_long_is_refused_after_ten_steps():
    model, data = regression()
    with pytest.raises(ValueError, match="60 steps of SGD within"):
        sgd_run(model, half_square, data, sgd=Sgd(0.1), steps=(10, 50), patience=1e-9)


def test_pulls_and_squares_telescope_to_the_change_of_the_distance():
    """Without momentum the mean of pull - lr/2 |b|^2 is minus the change of the squared distance over 2 lr T, exactly."""
    model, data = regression()
    model, data = model.double(), tuple(column.double() for column in data)
    run = sgd_run(model, half_square, data, sgd=Sgd(0.1, batch_size=8), steps=(5, 50))
    point = model.weight.detach().clone()
    generator = torch.Generator().manual_seed(0)
    for step in range(55):
        if step == 5:
            start = point.clone()
        rows = torch.randperm(200, generator=generator)[:8]
        x, y = data[0][rows], data[1][rows]
        point = point - 0.1 * ((x @ point.T - y).T @ x) / 8
    assert (run.pulls - 0.05 * run.squares).sum() * -0.2 == pytest.approx((point - start).square().sum().item())


def test_errors_of_trends_and_ratios_cover_the_truth():
    generator = np.random.default_rng(0)
    wrong = [0, 0]
    for _ in range(200):
        noise = np.convolve(generator.normal(size=1010), np.ones(10) / 10, mode="valid")[:1000]
        trend = block_trend(noise + 0.3 * np.linspace(0, 1, 1000), blocks=10)
        ratio = block_ratio(2 + noise, 1 + 0.1 * generator.normal(size=1000), blocks=10)
        wrong[0] += abs(trend.value - 0.3) > 3 * trend.stderr
        wrong[1] += abs(ratio.value - 2) > 3 * ratio.stderr
    assert max(wrong) <= 4  # 0.27 % of 200 is half a case; four would happen once in a thousand
    with pytest.raises(ValueError, match="at least 20 steps"):
        block_trend([1.0] * 5)
