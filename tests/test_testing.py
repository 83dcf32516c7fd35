"""A network that is sick fails people's own tests, and one that is not does not."""

import pytest
import torch
from torch import nn

import theodolite as th


def test_weights_that_are_not_finite_fail_with_what_to_type():
    model = nn.Linear(2, 1)
    nn.init.constant_(model.weight, float("nan"))
    with pytest.raises(AssertionError, match=r"weights-not-finite \(critical\): .* Fix: "):
        th.testing.assert_healthy(model)


def test_a_healthy_network_passes_and_its_diagnosis_is_handed_back():
    torch.manual_seed(0)
    found = th.testing.assert_healthy(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)), fail_on="critical")
    assert not found.meets("critical")
