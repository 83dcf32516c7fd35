"""What a loss does with answers and targets, by asking it."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.answering import Reshaped, subject
from theodolite.evidence.loss_checks import (
    cross_entropy_for,
    drawn_answers,
    is_blind,
    is_dealt_out,
    is_linear,
    is_past_its_range,
)

Y = torch.arange(96) % 3


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


def test_logarithms_of_probabilities_are_asked_for_and_scores_are_given():
    assert asked(is_linear, F.nll_loss)
    assert not asked(is_linear, F.cross_entropy)


@pytest.mark.parametrize(("y", "past"), [(2.0, True), (1.0, False)])
def test_targets_above_one_are_past_binary_cross_entropy(y, past):
    one = subject(Reshaped(1), y * (torch.arange(96) % 2).float()[:, None], F.binary_cross_entropy_with_logits)
    assert is_past_its_range(one) == past


def test_the_cross_entropy_is_that_of_scores_or_of_probabilities():
    scores = subject(Reshaped(3), Y, F.cross_entropy)
    chances = subject(nn.Sequential(Reshaped(3), nn.Softmax(1)), Y, F.cross_entropy)
    even = torch.zeros(96, 3)
    assert float(cross_entropy_for(scores)(even, Y)) == pytest.approx(math.log(3))
    assert float(cross_entropy_for(chances)(even + 1 / 3, Y)) == pytest.approx(math.log(3), rel=1e-5)
    assert cross_entropy_for(subject(Reshaped(2), Y, F.mse_loss)) is None  # more classes than outputs
