"""The loss when ignoring the input."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.answering import Reshaped, subject
from theodolite.evidence.batches import training_and_held_out
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.task import majority

G = torch.Generator().manual_seed(0)


def tokens(o, y):
    return F.cross_entropy(o.flatten(0, 1), y.flatten(), ignore_index=-100)


def test_the_loss_when_ignoring_the_input_is_that_of_the_shares_or_of_the_mean():
    y = (torch.rand(4000, generator=G) < 0.2).long()
    one = subject(Reshaped(2), y, F.cross_entropy, n=4000)
    entropy = -(0.2 * math.log(0.2) + 0.8 * math.log(0.8))
    assert constant_loss(one) == pytest.approx(entropy, rel=0.06)
    assert majority(one) == pytest.approx(0.8, abs=0.02)
    numbers = 5000 + 700 * torch.randn(2000, 1, generator=G)
    other = subject(Reshaped(1), numbers, F.mse_loss, n=2000)
    _, held = training_and_held_out(other)
    assert constant_loss(other) == pytest.approx(float(torch.cat([b.target for b in held]).var()), rel=0.05)


def test_one_answer_serves_all_places_of_a_text():
    """Fitted place by place, four sequences of 64 would be told by heart."""
    words = torch.randint(0, 50, (8, 64), generator=G)
    one = subject(Reshaped(64, 50), words, tokens, n=8)
    assert constant_loss(one) > 3.0


def test_a_variance_beside_a_mean_is_fitted_at_the_scale_of_the_targets():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x):
            mean, spread = self.linear(x).unbind(1)
            return mean, F.softplus(spread)

    y = 1e3 * torch.randn(96, generator=G)
    one = subject(Both(), y, lambda o, t: F.gaussian_nll_loss(o[0], t, o[1]))
    assert constant_loss(one) == pytest.approx(0.5 + math.log(1e3), abs=0.3)


@pytest.mark.parametrize("kind", ["triplets", "pairs alike", "density"])
def test_a_loss_that_compares_answers_with_each_other_has_that_of_equal_ones(kind):
    losses = {
        "triplets": lambda o, _: F.triplet_margin_loss(o[:, 0], o[:, 1], o[:, 2], margin=0.7),
        "pairs alike": lambda o, _: 0.1 + F.mse_loss(o[:, 0], o[:, 1]),  # equal answers are the best there are
        "density": lambda o, _: 5 + 0.5 * o.square().mean(),  # what they cost depends on what they are
    }
    one = subject(Reshaped(3, 4), torch.zeros(96), losses[kind])
    assert constant_loss(one) == pytest.approx(0.7 if kind == "triplets" else math.nan, abs=1e-5, nan_ok=True)


def test_a_constant_that_every_sample_is_content_with_is_no_reference():
    """A residual, its slope and the curve itself: a curve of 1 everywhere has no loss, and is no solution."""

    def equation(o, y):
        return o[:, 0].square().mean() + (y[:, 0] * (o[:, 1] - 1).square()).mean()

    start = (torch.arange(512) % 8 == 0).float()[:, None]
    one = subject(Reshaped(2), start, equation, n=512)
    assert math.isnan(constant_loss(one))
    noisy = subject(
        Reshaped(2), start + 1e-3 * torch.randn(512, 1, generator=G), lambda o, y: F.mse_loss(o[:, :1], y), n=512
    )
    assert constant_loss(noisy) == pytest.approx(float(start.var()), rel=0.1)


def test_a_loss_that_refuses_answers_beyond_its_range_has_a_constant():
    y = (torch.rand(512, 3, generator=G) < 0.3).float()
    shares = subject(nn.Sequential(Reshaped(3), nn.Softmax(-1)), y, F.binary_cross_entropy, n=512)
    assert 0 < constant_loss(shares) < 2
