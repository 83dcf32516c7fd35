"""Collapse where it is whole, where it is not, and where there are no classes."""

import pytest
import torch
from torch import nn

import theodolite as th


def simplex(classes):
    corners = torch.eye(classes) - 1 / classes
    return corners / corners.norm(dim=1, keepdim=True)


def readings(features, y, weight):
    model = nn.Linear(features.shape[1], len(weight), bias=False)
    with torch.no_grad():
        model.weight.copy_(weight)
    subject = th.Subject(model, data=(features, y), loss=nn.functional.cross_entropy)
    return {reading.quantity[:3] + reading.quantity[4:14]: reading.measured for reading in th.read("collapse", subject)}


def test_a_simplex_whose_classifier_is_its_means_has_collapsed_in_all_respects():
    y = torch.arange(40) % 4
    found = readings(simplex(4)[y], y, simplex(4))
    assert len(found) == 5
    assert max(found.values()) == pytest.approx(0.0, abs=1e-5)


def test_scatter_and_another_classifier_are_seen():
    y = torch.arange(200) % 4
    noise = 0.5 * torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    found = readings(simplex(4)[y] + noise, y, simplex(4).roll(1, 0))
    (within,) = [value for name, value in found.items() if name.startswith("NC1")]
    (turned,) = [value for name, value in found.items() if name.startswith("NC3")]
    assert within > 0.1 and turned > 1.0


def test_numbers_as_targets_have_no_classes_to_collapse():
    subject = th.Subject(nn.Linear(3, 1), data=(torch.ones(8, 3), torch.ones(8, 1)), loss=nn.functional.mse_loss)
    assert th.read("collapse", subject) == ()
