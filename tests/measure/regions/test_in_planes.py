import pytest
import torch
from torch import nn

from theodolite.measure.regions import _forks, regions_in_polygon

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
    centres = torch.from_numpy(found.cells.centres())
    ones = torch.cat([torch.ones(len(centres), 1, dtype=torch.float64), centres], 1)
    assert torch.allclose(torch.einsum("cok,ck->co", found.maps, ones), net(centres), rtol=0, atol=1e-12)
    assert found.areas.sum() == pytest.approx(4, rel=1e-12)
    monkeypatch.setattr(_forks, "MOST", 10**9)  # every part anew
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
    centres = torch.from_numpy(found.cells.centres())
    ones = torch.cat([torch.ones(len(centres), 1, dtype=torch.float64), centres], 1)
    assert found.regions > 20
    assert torch.allclose(torch.einsum("cok,ck->co", found.maps, ones), net(centres), rtol=0, atol=1e-12)
