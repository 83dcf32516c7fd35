"""What a loss does with answers and targets, by asking it."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.answering import Reshaped, subject
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.loss_checks import (
    cross_entropy_for,
    drawn_answers,
    falls_as_its_gradient_says,
    falls_without_end,
    is_blind,
    is_dealt_out,
    is_linear,
    is_over_samples,
    is_past_its_range,
    is_turned_round,
)

Y = torch.arange(96) % 3
_DRAWN = torch.randn(96, 3, generator=torch.Generator().manual_seed(0))


def asked(question, loss, y=Y, outputs=3):
    one = subject(Reshaped(outputs), y, loss)
    return question(one, drawn_answers(one))


def test_a_loss_that_does_not_read_the_answers_is_blind():
    assert asked(is_blind, lambda o, t: 0 * o.sum() + t.float().mean())
    assert not asked(is_blind, F.cross_entropy)


def test_targets_dealt_out_anew_change_a_loss_of_samples():
    assert asked(is_dealt_out, lambda o, t: (o.mean() - t.float().square().mean()).square())
    assert not asked(is_dealt_out, F.cross_entropy)
    assert not asked(is_dealt_out, lambda o, t: o.square().mean())  # it never looks at its targets
    squashed = subject(nn.Sequential(Reshaped(3), nn.Sigmoid()), 50 + 9 * _DRAWN, F.smooth_l1_loss)
    assert not is_dealt_out(squashed, drawn_answers(squashed))  # all answers lie on one side of all targets
    column = subject(Reshaped(1), 50 + 9 * _DRAWN[:, 0], F.l1_loss)
    assert is_dealt_out(column, drawn_answers(column))  # (96, 1) beside (96,)


def test_logarithms_of_probabilities_are_asked_for_and_scores_are_given():
    assert asked(is_linear, F.nll_loss)
    assert not asked(is_linear, F.cross_entropy)
    shares = torch.randn(96, 3, generator=torch.Generator().manual_seed(0)).softmax(-1)
    assert asked(is_linear, lambda o, t: F.kl_div(o / 3, t, reduction="batchmean"), shares)
    assert not asked(is_linear, lambda o, t: F.kl_div(o.log_softmax(-1), t, reduction="batchmean"), shares)


def _ctc(o, y):
    return F.ctc_loss(o.transpose(0, 1), y, torch.full((len(y),), 12), torch.full((len(y),), 3))


def test_a_loss_of_logarithms_of_probabilities_has_a_least():
    y = 1 + torch.stack([Y, Y, Y], 1) % 2
    assert not falls_without_end(subject(nn.Sequential(Reshaped(12, 6), nn.LogSoftmax(-1)), y, _ctc))
    assert not falls_without_end(subject(nn.Sequential(Reshaped(3), nn.LogSoftmax(-1)), Y, F.nll_loss))


@pytest.mark.parametrize(("y", "past"), [(2.0, True), (1.0, False)])
def test_targets_above_one_are_past_binary_cross_entropy(y, past):
    one = subject(Reshaped(1), y * (torch.arange(96) % 2).float()[:, None], F.binary_cross_entropy_with_logits)
    assert is_past_its_range(one) == past


def _dice(o, y):
    p = o.sigmoid()
    return ((2 * (p * y).sum(1) + 1) / (p.sum(1) + y.sum(1) + 1)).mean()


def _pinball(o, y):
    return torch.maximum((y - o) * torch.tensor([0.1, 0.5, 0.9]), (y - o) * torch.tensor([-0.9, -0.5, -0.1])).mean()


def _reinforce(o, y):
    return -(y[:, 1] * o.log_softmax(1).gather(1, y[:, :1].long())[:, 0]).mean()


def _pairs(d, y):
    return (y * d**2 + (1 - y) * (2 - d).relu() ** 2).mean()


_LABELS = (_DRAWN > 0).float()
_ACTIONS = torch.stack([(Y % 2).float(), -1 - _DRAWN[:, 0].abs()], 1)  # of two, each with a negative reward
_LIVES = torch.stack([_DRAWN[:, 0].exp(), _LABELS[:, 1]], 1)


@pytest.mark.parametrize(
    ("loss", "y", "outputs", "turned"),
    [
        (_dice, _LABELS, 3, True),
        (lambda o, t: 1 - _dice(o, t), _LABELS, 3, False),
        (lambda o, t: -_pinball(o, t), _DRAWN[:, :1], 3, True),
        (_pinball, _DRAWN[:, :1], 3, False),
        (lambda o, t: F.cosine_similarity(o, t).mean(), _DRAWN, 3, True),
        (lambda o, t: -F.cosine_similarity(o, t).mean(), _DRAWN, 3, False),
        (lambda o, t: (o.softmax(1) * t).sum(1).mean(), _DRAWN, 3, False),  # targets are costs
        (lambda o, t: (o[:, 0].exp() * t[:, 0] - t[:, 1] * o[:, 0]).mean(), _LIVES, 1, False),
        (lambda o, t: (o[:, 0].exp() * t - o[:, 0]).mean(), _LIVES[:, 0], 1, False),
        (_reinforce, _ACTIONS, 2, False),
        (lambda o, t: _pairs(o.exp()[:, 0], t), _LABELS[:, 0], 1, False),
        (lambda o, t: F.gaussian_nll_loss(o[:, :1], t, o[:, 1:].exp()), _DRAWN[:, :1], 2, False),
        (lambda o, t: -F.cross_entropy(o, t), Y, 3, True),
    ],
)
def test_a_loss_that_is_highest_where_answers_are_right_is_turned_round(loss, y, outputs, turned):
    assert is_turned_round(subject(Reshaped(outputs), y, loss)) == turned


def test_the_cross_entropy_is_that_of_scores_or_of_probabilities():
    scores = subject(Reshaped(3), Y, F.cross_entropy)
    chances = subject(nn.Sequential(Reshaped(3), nn.Softmax(1)), Y, F.cross_entropy)
    even = torch.zeros(96, 3)
    assert float(cross_entropy_for(scores)(even, Y)) == pytest.approx(math.log(3))
    assert float(cross_entropy_for(chances)(even + 1 / 3, Y)) == pytest.approx(math.log(3), rel=1e-5)
    assert cross_entropy_for(subject(Reshaped(2), Y, F.mse_loss)) is None  # more classes than outputs


def _ends(shaped, loss):
    return not falls_without_end(subject(nn.Sequential(Reshaped(3), shaped), Y, loss))


def test_what_a_model_cannot_answer_is_no_way_down():
    """A logarithm of a probability is never above zero, nor a loss that the model computes below; a critic's answer may be."""
    assert _ends(nn.LogSoftmax(-1), F.nll_loss) and _ends(nn.Softplus(), lambda o, y: o.mean())
    assert not _ends(nn.Identity(), lambda o, y: o.mean()) and not _ends(
        nn.LogSoftmax(-1), lambda o, y: -o.mean() + o[:, 0].mean()
    )


def _policy(o, y):
    value, chosen = o[:, 2], o.log_softmax(1).gather(1, y[:, None])[:, 0]
    return ((value - y).detach() * chosen).mean() + F.mse_loss(value, y.float())


def _weighted(o, y):
    each = F.cross_entropy(o, y, reduction="none")
    return ((1 - (-each).exp()).detach() * each).mean()


@pytest.mark.parametrize(
    ("loss", "kept"),
    [
        (F.cross_entropy, True),
        (F.multi_margin_loss, True),
        (lambda o, y: F.l1_loss(o[:, 0], 1e4 + y), True),
        (lambda o, y: F.cross_entropy(F.dropout(o), y), True),
        (lambda o, y: F.mse_loss(o[:, 0], y.float(), reduction="sum"), True),
        (lambda o, y: 0 * o.sum() + y.float().mean(), True),
        (_policy, False),
        (_weighted, False),
        (lambda o, y: F.cross_entropy(o, y) / F.cross_entropy(o, y).detach(), False),
    ],
)
def test_a_loss_that_is_detached_from_its_value_has_no_constant(loss, kept):
    one = subject(Reshaped(3), Y, loss)
    assert falls_as_its_gradient_says(one) == kept
    assert kept or math.isnan(constant_loss(one))


@pytest.mark.parametrize("axis", [0, 1])
def test_probabilities_over_samples_are_none_of_classes(axis):
    assert asked(is_over_samples, lambda o, t: F.nll_loss(o.log_softmax(axis), t)) == (axis == 0)
    assert not asked(is_over_samples, lambda o, t: F.mse_loss(o, F.one_hot(t, 3).float()))
    rows = torch.arange(96)  # each sample is told from the others by its answers to them
    assert not asked(is_over_samples, lambda o, t: F.nll_loss(o.log_softmax(axis), t), y=rows, outputs=96)


def test_a_loss_of_distances_that_reads_who_is_alike_makes_no_probabilities():
    def triplets(o, t):
        apart, alike = torch.cdist(o, o), t[:, None] == t[None]
        return ((apart - 1e3 * ~alike).amax(1) - (apart + 1e3 * alike).amin(1) + 0.5).relu().mean()

    assert not asked(is_over_samples, triplets)
