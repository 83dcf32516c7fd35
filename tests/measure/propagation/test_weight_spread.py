import pytest
import torch
from torch import nn

from theodolite.io.weights import weights_of
from theodolite.measure.propagation import fan_in, layer_variances, mean_square


def found(model):
    return {layer.name: layer for layer in layer_variances(weights_of(model), model=model)}


def test_variances_and_their_errors():
    model = nn.Linear(400, 300)
    with torch.no_grad():
        model.weight.normal_(0, (1.7 / 400) ** 0.5, generator=torch.Generator().manual_seed(0))
        model.bias.fill_(0.5)
    layer = found(model)["weight"]
    assert layer.fan_in == 400
    assert abs(layer.weight_variance.value - 1.7) < 4 * layer.weight_variance.stderr
    assert layer.weight_variance.stderr == pytest.approx(1.7 * (2 / 120_000) ** 0.5, rel=0.05)
    assert layer.bias_variance.value == 0.25


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
    fans = {name: layer.fan_in for name, layer in found(model).items() if "layer_norm" not in name}
    assert fans == {
        "linear.weight": 3,
        "conv.weight": 18,
        "up.weight": 16,
        "attention.in_proj_weight": 8,
        "attention.out_proj.weight": 8,
        "lstm.weight_ih_l0": 5,
        "lstm.weight_hh_l0": 7,
    }


def test_normalization_gains_of_several_axes_are_not_layers():
    assert found(nn.LayerNorm((3, 3))) == {}


def test_a_checkpoint_is_read_by_names_and_shapes():
    tensors = {
        "embed_tokens.weight": torch.ones(9, 8),
        "h.0.weight": torch.ones(4, 8),
        "h.0.bias": torch.zeros(4),
        "norm.weight": torch.ones(8),
        "codes.weight": torch.ones(4, 4, dtype=torch.int8),
    }
    (layer,) = layer_variances(weights_of(tensors))
    assert (layer.name, layer.fan_in, layer.weight_variance.value, layer.bias_variance.value) == (
        "h.0.weight",
        8,
        8.0,
        0.0,
    )


def test_fan_in_of_shapes():
    assert fan_in((4, 3, 5, 5)) == 75


@pytest.mark.parametrize("kind", [torch.complex64, torch.complex128])
def test_the_mean_square_of_complex_weights_counts_their_imaginary_part(kind):
    z = torch.tensor([[3 + 4j, 0], [0, 5j]], dtype=kind)
    assert mean_square(z).value == pytest.approx(12.5)
    assert mean_square(z.numpy()).value == pytest.approx(12.5)
    assert mean_square(z).stderr == pytest.approx(12.5 / 2)
