import torch
from torch import nn

import theodolite as th


def subject(model, n=50, classes=3):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(n, 4, generator=generator), torch.randint(classes, (n,), generator=generator)
    return th.Subject(model, data=(x, y), loss=nn.functional.cross_entropy)


def mlp(*widths, act=nn.ReLU, outputs=3):
    layers = []
    for a, b in zip((4, *widths), widths, strict=False):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


def test_wide_layers_certainly_hold_the_data_and_narrow_ones_not():
    (wide,) = th.read("capacity", subject(mlp(20, 24)))
    assert wide.status == "agrees"
    assert wide.expected.high == 20 * 2 * 2
    (narrow,) = th.read("capacity", subject(mlp(5, 5)))
    assert narrow.status == "no reference"  # theory is silent of these targets: no alarm
    assert "is not known" in narrow.meaning or "cannot fit" in narrow.meaning
    assert "certainly hold the data" in narrow.meaning


def test_a_third_layer_with_room_for_the_classes_holds_as_many_as_one_output():
    (found,) = th.read("capacity", subject(mlp(20, 24, 12)))
    assert found.expected.high == 20 * 2 * 6


def test_what_cannot_be_read_is_counted_and_said():
    for model in (mlp(8, 8, act=nn.Tanh), nn.Sequential(nn.Linear(4, 3))):
        (found,) = th.read("capacity", subject(model))
        assert found.status == "no reference"
        assert "is not known" in found.meaning
