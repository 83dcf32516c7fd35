"""Spectra of features with a planted decay."""

import pytest
import torch
from torch import nn

import theodolite as th


def by_quantity(readings, quantity):
    return {reading.where: reading for reading in readings if quantity in reading.quantity}


def test_feature_spectra_of_a_planted_decay():
    """Features whose covariance has eigenvalues k^-1.5 by construction, 3,000 of them in 120 dimensions."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3000, 120, generator=generator) * torch.arange(1, 121) ** -0.75
    model = nn.Linear(120, 120, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.eye(120))
    readings = th.read("feature-spectrum", model, data=x)
    assert by_quantity(readings, "alpha-ReQ")[""].measured == pytest.approx(1.5, abs=0.1)


def test_sequences_and_images_are_pooled():
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 12, 3), nn.Flatten(), nn.Linear(12 * 16, 4))
    readings = th.read(
        "feature-spectrum", model, data=torch.randn(64, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    )
    assert by_quantity(readings, "participation")["2"].expected.high == 12
