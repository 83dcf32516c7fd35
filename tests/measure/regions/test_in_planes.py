import tracemalloc

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.measure.regions import (
    _cell_propagation,
    _polygons,
    _shared_products,
    region_parts_in_polygon,
    regions_in_polygon,
)

SQUARE = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]


def network(bend, widths=(24, 24, 24)):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = []
        for fan_in, width in zip((2, *widths), (*widths, 3), strict=True):
            layers += [nn.Linear(fan_in, width, dtype=torch.float64), bend()]
            layers[-2].weight.data.mul_(2.0)
        return nn.Sequential(*layers[:-1]).double()


@pytest.mark.parametrize("bend", [nn.ReLU, nn.LeakyReLU, nn.ReLU6, nn.Hardtanh, nn.PReLU])
def test_maps_that_are_mended_from_the_cell_before_are_those_of_the_network(bend, monkeypatch):
    net = network(bend)
    found = regions_in_polygon(net, SQUARE)
    centers = torch.from_numpy(found.cells.centers())
    ones = torch.cat([torch.ones(len(centers), 1, dtype=torch.float64), centers], 1)
    assert torch.allclose(torch.einsum("cok,ck->co", found.maps, ones), net(centers), rtol=0, atol=1e-12)
    assert found.areas.sum() == pytest.approx(4, rel=1e-12)
    monkeypatch.setattr(_shared_products, "MOST", 10**9)  # every part anew
    whole = regions_in_polygon(net, SQUARE)
    assert whole.regions == found.regions and torch.allclose(whole.maps, found.maps, rtol=0, atol=1e-12)


def test_a_bend_that_others_read_too_is_not_forked():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.last = nn.Linear(2, 12), nn.Linear(12, 12), nn.Linear(12, 1)

        def forward(self, x):
            h = torch.relu(self.first(x))
            return self.last(torch.relu(self.second(h)) + h)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        net = Twice().double()
    found = regions_in_polygon(net, SQUARE)
    centers = torch.from_numpy(found.cells.centers())
    ones = torch.cat([torch.ones(len(centers), 1, dtype=torch.float64), centers], 1)
    assert found.regions > 20
    assert torch.allclose(torch.einsum("cok,ck->co", found.maps, ones), net(centers), rtol=0, atol=1e-12)


@pytest.fixture
def little_memory(monkeypatch):
    """As if only some thousand numbers fitted: a few dozen cells at a time."""
    monkeypatch.setattr(_cell_propagation, "NUMBERS", 6_000)
    monkeypatch.setattr(_polygons, "LINES", 100)
    monkeypatch.setattr(_polygons, "MOST", 80)


@pytest.mark.parametrize("bend", [nn.ReLU, nn.Hardtanh, nn.PReLU])
def test_parts_that_fit_into_little_memory_are_the_same_cells(bend, little_memory, monkeypatch):
    net = network(bend)
    parts = list(region_parts_in_polygon(net, SQUARE))
    assert max(part.regions for part in parts) <= 6_000 // (3 * 24) < sum(part.regions for part in parts) / 10
    monkeypatch.undo()
    whole = regions_in_polygon(net, SQUARE)
    areas = np.concatenate([part.areas for part in parts])
    assert len(areas) == whole.regions
    assert np.allclose(np.sort(areas), np.sort(whole.areas), rtol=0, atol=1e-12)
    centers = torch.from_numpy(np.concatenate([part.cells.centers() for part in parts]))
    maps = torch.cat([part.maps for part in parts])
    ones = torch.cat([torch.ones(len(centers), 1, dtype=torch.float64), centers], 1)
    assert torch.allclose(torch.einsum("cok,ck->co", maps, ones), net(centers), rtol=0, atol=1e-12)


def test_windows_are_cut_part_by_part_too(little_memory, monkeypatch):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = (nn.Linear(2, 36), nn.Unflatten(1, (1, 6, 6)), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9, 12))
        net = nn.Sequential(*layers, nn.ReLU(), nn.Linear(12, 1)).double()
    few = sum(part.regions for part in region_parts_in_polygon(net, SQUARE))
    monkeypatch.undo()
    assert few == regions_in_polygon(net, SQUARE).regions > 30


def test_memory_does_not_grow_with_the_number_of_cells(little_memory):
    peaks, cells = [], []
    for width in (16, 48):
        parts = region_parts_in_polygon(network(nn.ReLU, (width, width)), SQUARE)
        tracemalloc.start()
        cells.append(sum(part.regions for part in parts))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert cells[1] > 5 * cells[0]
    assert peaks[1] < 2.5 * peaks[0]


def test_what_is_wrong_is_said_before_the_first_part_is_asked_for():
    with pytest.raises(ValueError, match="convex polygon"):
        region_parts_in_polygon(network(nn.ReLU), [(0, 0), (1, 1), (1, 0), (0, 1)])
