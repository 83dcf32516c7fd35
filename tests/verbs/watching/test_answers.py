"""Whether a network that looks dead on a few samples answers all of the probe alike."""

import torch
from torch import nn
from torch.nn.functional import mse_loss

from fixtures.watched import Watch


def half_off(share):
    """A network of one rectifier that is on for some samples alone, by their order in the probe."""
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1))
    with torch.no_grad():
        for layer in (model[0], model[2]):
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    x = torch.full((64, 1), -1.0)
    x[1 : 1 + share, 0] = torch.linspace(1.0, 2.0, share)  # the eight samples of a look are 0, 8, 16, ...
    return model, x


def test_a_network_is_dead_only_if_it_answers_all_of_the_probe_alike():
    for share, dead in ((3, False), (0, True)):
        model, x = half_off(share)
        watch = Watch(model, probe=(x, torch.zeros(64, 1)), loss=mse_loss, every=1)
        watch.look(0, lr=1e-3)
        record = watch.look(1, lr=1e-3)
        assert (record.phase == "dead") == dead, record.reason
        assert any(f.name == "units-dead" for f in watch.findings) == dead
