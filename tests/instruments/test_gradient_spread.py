import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.measure.propagation import log_spread, redrawn_gradients


def subject(model, x=None):
    x = torch.randn(20, 6, generator=torch.Generator().manual_seed(0)) if x is None else x
    return th.Subject(model, data=x)


def plain(depth, width):
    layers = [nn.Linear(6, width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 3))


@pytest.mark.parametrize(("depth", "width"), [(1, 64), (4, 48)])
def test_plain_relu_networks_agree_with_theory(depth, width):
    (reading,) = th.read("gradient-spread", subject(plain(depth, width)))
    assert reading.status == "agrees", reading


def test_a_deep_narrow_network_is_told_to_widen():
    (reading,) = th.read("gradient-spread", subject(plain(8, 24)))
    assert "widen to" in reading.meaning


def test_correlated_weights_leave_the_band():
    class Copied(nn.Linear):
        def reset_parameters(self):
            super().reset_parameters()
            with torch.no_grad():
                rows = self.weight.shape[0] // 8
                self.weight.copy_(self.weight[:rows].repeat(8, 1) if rows else self.weight)
                self.bias.copy_(self.bias[:rows].repeat(8) if rows else self.bias)

    model = plain(3, 64)
    for place in (0, 2, 4):
        model[place] = Copied(model[place].in_features, 64)
    found = redrawn_gradients(model, (torch.randn(4, 6, generator=torch.Generator().manual_seed(0)),), {}, draws=100)
    (honest,) = th.read("gradient-spread", subject(plain(3, 64)))
    assert log_spread(found.squares)[0] > 3 * honest.expected.high


def test_other_architectures_are_measured_without_a_reference():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(64, 2))
    (reading,) = th.read(
        "gradient-spread", subject(model, torch.randn(8, 1, 6, 6, generator=torch.Generator().manual_seed(0)))
    )
    assert reading.status == "no reference"
    assert reading.measured > 0


def test_modules_that_cannot_be_drawn_again_are_named():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(5))

        def forward(self, x):
            return self.gain * x

    model = nn.Sequential(nn.Linear(6, 5), Scale(), nn.Linear(5, 2))
    (reading,) = th.read("gradient-spread", subject(model))
    assert reading.meaning.endswith("because they have no reset_parameters: 1.")
    with pytest.raises(ValueError, match="expected a module with reset_parameters"):
        redrawn_gradients(Scale(), (torch.ones(2, 5),), {}, draws=3)


def test_tokens_are_refused():
    with pytest.raises(ValueError, match="expected inputs of real numbers"):
        redrawn_gradients(nn.Embedding(4, 2), (torch.zeros(3, dtype=torch.long),), {}, draws=3)


def test_dead_networks_are_told():
    with pytest.raises(ValueError, match="mostly dead"):
        log_spread(torch.zeros(50, 2))


def test_half_precision_models_are_measured():
    model = plain(2, 32).to(torch.bfloat16)
    found = redrawn_gradients(
        model, (torch.randn(4, 6, generator=torch.Generator().manual_seed(0)).bfloat16(),), {}, draws=20
    )
    assert found.squares.isfinite().all()


def test_the_jackknife_error_is_that_of_a_variance():
    draws = torch.randn(400, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64).exp()
    value, error = log_spread(draws)
    assert value == pytest.approx(float(draws.log().var()), rel=1e-12)
    assert error == pytest.approx((2 / 399) ** 0.5 * value, rel=0.25)
