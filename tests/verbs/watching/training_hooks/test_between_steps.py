"""What is written to weights between steps, against what is written there by a step."""

import pytest
import torch

from theodolite.verbs.watching.training_hooks.between_steps import BetweenSteps


def said(write, size=400, steps=40):
    """What is said of Gaussian steps with ``write(weights, before, number)`` after each."""
    draw = torch.Generator().manual_seed(0)
    weights = torch.nn.Parameter(torch.randn(size, generator=draw))
    between = BetweenSteps(weights)
    for number in range(steps):
        between.before_step(alone=True, near=number < 8)
        before = weights.detach().clone()
        weights.data += 0.01 * torch.randn(size, generator=draw)
        between.after_step()
        with torch.no_grad():
            write(weights, before, number)
    return " ".join(between.lost()[:1])


@torch.no_grad()
def redraw(weights, before, number):
    if number % 12 == 11:
        torch.nn.init.normal_(weights)


def clamp(weights, before, number):
    weights.clamp_(-0.01, 0.01)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda weights, before, number: weights.lerp_(before, 0.99), "undone"),
        (lambda weights, before, number: weights.data.copy_(before), "undone"),
        (redraw, "initialized again"),
        (lambda weights, before, number: None, ""),
        (lambda weights, before, number: weights.mul_(0.999), ""),  # decay by hand
        (lambda weights, before, number: weights.lerp_(before, 0.5), ""),  # a slow copy beside a fast one
        (lambda weights, before, number: weights.div_(weights.norm()), ""),  # on a sphere
        (clamp, ""),
    ],
)
def test_steps_that_come_to_nothing_are_told_from_what_is_written_on_purpose(write, words):
    found = said(write)
    assert words in found and bool(words) == bool(found)


def test_few_weights_are_not_told_from_others():
    assert not said(redraw, size=9)
