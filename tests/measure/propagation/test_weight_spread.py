import pytest
import torch
from torch import nn

from theodolite.io.weights import owners_of
from theodolite.measure.propagation import fan_in, mean_square, sums_inputs


def fan_ins(model):
    owners = owners_of(model)
    summing = [(name, p) for name, p in model.named_parameters() if sums_inputs(name, p, owners.get(name))]
    return {name: fan_in(tuple(p.shape), owners.get(name)) for name, p in summing}


def test_variances_and_their_errors():
    weight = torch.empty(300, 400).normal_(0, (1.7 / 400) ** 0.5, generator=torch.Generator().manual_seed(0))
    found = mean_square(weight, 400)
    assert abs(found.value - 1.7) < 4 * found.stderr
    assert found.stderr == pytest.approx(1.7 * (2 / 120_000) ** 0.5, rel=0.05)
    assert mean_square(torch.full((300,), 0.5)).value == 0.25


def test_every_kind_of_layer_that_sums_its_inputs():
    model = nn.ModuleDict(
        {
            "linear": nn.Linear(3, 4),
            "conv": nn.Conv2d(4, 6, 3, groups=2),
            "up": nn.ConvTranspose2d(4, 6, 4, stride=2),
            "attention": nn.MultiheadAttention(8, 2),
            "lstm": nn.LSTM(5, 7),
            "embed": nn.Embedding(9, 8),
            "norm": nn.BatchNorm2d(4),
            "layer_norm": nn.LayerNorm((3, 3)),
        }
    )
    assert fan_ins(model) == {
        "linear.weight": 3,
        "conv.weight": 18,
        "up.weight": 16,
        "attention.in_proj_weight": 8,
        "attention.out_proj.weight": 8,
        "lstm.weight_ih_l0": 5,
        "lstm.weight_hh_l0": 7,
    }


def test_a_checkpoint_is_read_by_names_and_shapes():
    assert sums_inputs("h.0.weight", torch.ones(4, 8))
    assert not sums_inputs("embed_tokens.weight", torch.ones(9, 8))
    assert not sums_inputs("norm.weight", torch.ones(8))
    assert not sums_inputs("codes.weight", torch.ones(4, 4, dtype=torch.int8))


def test_fan_in_of_shapes():
    assert fan_in((4, 3, 5, 5)) == 75


@pytest.mark.parametrize("kind", [torch.complex64, torch.complex128])
def test_the_mean_square_of_complex_weights_counts_their_imaginary_part(kind):
    z = torch.tensor([[3 + 4j, 0], [0, 5j]], dtype=kind)
    assert mean_square(z).value == pytest.approx(12.5)
    assert mean_square(z.numpy()).value == pytest.approx(12.5)
    assert mean_square(z).stderr == pytest.approx(12.5 / 2)
