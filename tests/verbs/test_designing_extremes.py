"""Designs of networks whose signals explode or vanish, or whose data are centered or zero."""

import json

import numpy as np
import pytest
import torch

import theodolite as th
from theodolite.construct.capacity import memorize


@pytest.mark.parametrize("activation", ["quadratic", "exp", "tanhshrink"])
def test_design_answers_for_activations_that_explode_or_vanish(activation):
    found = th.design(activation=activation, depth=3, width=32)
    assert found.rates.single >= 0
    assert json.loads(found.json())["activation"] == activation
    assert found.text()


def test_networks_whose_signals_overflow_are_not_called_healthy():
    found = th.design(activation="exp", depth=30, width=32)
    assert [(f.name, f.severity) for f in found.diagnosis.findings] == [("signal-explodes", "critical")]
    assert "grows to inf" in found.text()


def test_design_answers_for_data_of_zeros():
    assert th.design(activation="relu", depth=2, width=16, data=torch.zeros(6, 3)).rates.single > 0


def test_design_advises_at_most_the_true_step_on_centered_data():
    x = torch.randn(200, 10, generator=torch.Generator().manual_seed(0))
    assert 0.12 <= th.design(activation="tanh", depth=3, width=128, data=x - x.mean(0)).rates.single <= 0.24


def test_memorize_says_when_two_points_cannot_be_told_apart():
    random = np.random.default_rng(0)
    x, y = random.standard_normal((20, 2)), random.standard_normal(20)
    x[1] = x[0]
    x[1, 0] += 1e-15
    with pytest.raises(ValueError, match="expected points that double precision can tell apart"):
        memorize(x, y)
