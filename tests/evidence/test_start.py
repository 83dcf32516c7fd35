"""What is known of a training's past, and that nothing of it is guessed."""

import pytest
import torch
from torch import nn

from fixtures.fresh import digits_like, stack
from fixtures.judging import subject_of
from fixtures.trained import patient
from theodolite.core.run import RunMoment
from theodolite.evidence.start import (
    after_steps,
    at_weights,
    beginning,
    largest_lr,
    lr_left,
    schedule,
    steps_are_known,
    steps_made,
    was_trained,
)


def adam(own):
    return torch.optim.Adam(own, 1e-3)


def test_a_fresh_network_was_not_trained_whatever_it_looks_like():
    given = digits_like(0, lambda: stack(2))
    with torch.no_grad():
        for p in given["model"].parameters():
            p.add_(0.1)
    subject = subject_of(given)
    assert not was_trained(subject) and steps_made(subject) == 0 and beginning(subject) is None


def test_looks_state_and_statistics_tell_of_a_run():
    run = subject_of(patient(0, adam, steps=40))
    assert was_trained(run) and steps_made(run) == 40 and after_steps(run) == "after 40 steps"
    given = patient(0, adam, steps=40)
    bare = subject_of({k: given[k] for k in ("model", "data", "loss", "optimizer")})
    assert steps_made(bare) == 40 and steps_are_known(bare)  # Adam counts
    normed = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    normed(torch.randn(8, 4))
    assert was_trained(subject_of({"model": normed}))


def test_a_schedule_is_read_off_the_looks():
    given = patient(0, adam, steps=0)
    moments = [RunMoment(s, lr=lr) for s, lr in ((0, 0.0001), (10, 0.001), (100, 0.0001))]
    subject = subject_of({**given, "history": moments})
    assert largest_lr(subject) == 0.001
    rates = schedule(subject, 101)
    assert rates[0] == pytest.approx(0.1) and rates[10] == 1.0 and rates[55] == pytest.approx(0.55)
    for group in given["optimizer"].param_groups:
        group["lr"] = 1e-5
    assert lr_left(subject) == pytest.approx(0.01)


def test_other_weights_are_put_back_bit_for_bit_also_after_an_error():
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    with pytest.raises(RuntimeError), at_weights(model, {"weight": torch.zeros(2, 3)}):
        assert not model.weight.any()
        raise RuntimeError
    assert torch.equal(model.weight, before)
