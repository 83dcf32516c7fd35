"""A trial is the user's own training: step for step the same numbers, and nothing of theirs is touched."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from fixtures.judging import subject_of
from fixtures.trained import batches_of, clouds, network, patient
from theodolite.core.subject import Subject
from theodolite.evidence.batches import training_and_held_out
from theodolite.evidence.trial import AS_IT_IS, Change, Trial, gain_of, judged_constant, judged_parts, present_score
from theodolite.io.batches import Batch


def fresh(lr=0.1, **more):
    return patient(0, lambda own: torch.optim.SGD(own, lr, momentum=0.9), steps=0, **more)


def test_the_plain_copy_takes_the_very_steps_of_the_users_loop():
    given = fresh()
    subject = subject_of(given)
    training, _ = training_and_held_out(subject)
    trial = Trial(subject, AS_IT_IS).advance(20)
    model = network(0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for step in range(20):
        batch = training[step % len(training)]
        optimizer.zero_grad()
        cross_entropy(model(*batch.inputs), batch.target).backward()
        optimizer.step()
    for mine, other in zip(trial.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_trial_taken_further_is_the_one_made_at_once_dropout_included():
    def drops():
        return subject_of(patient(0, lambda own: torch.optim.Adam(own, 1e-2), lambda: torch.nn.Dropout(0.5), steps=0))

    twice = Trial(drops(), AS_IT_IS).advance(7).advance(15)
    assert twice.losses == Trial(drops(), AS_IT_IS).advance(15).losses


def test_nothing_of_the_users_is_touched():
    given = patient(0, lambda own: torch.optim.Adam(own, 1e-2), steps=30)
    before = copy.deepcopy((given["model"].state_dict(), given["optimizer"].state_dict()))
    state = torch.get_rng_state()
    subject = subject_of(given)
    Trial(subject, Change("lr x 10", lr=10.0)).advance(10).score()
    Trial(subject, Change("more", from_here=True)).advance(10).score()
    assert torch.equal(state, torch.get_rng_state())
    after = (given["model"].state_dict(), given["optimizer"].state_dict())
    assert all(torch.equal(before[0][k], after[0][k]) for k in before[0])
    assert str(before[1]) == str(after[1])


def test_a_run_begins_at_its_own_start_with_its_own_schedule():
    x, y = clouds(0, 512)
    model = network(0)
    origin = {k: v.clone() for k, v in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 10))
    from theodolite.core.run import RunMoment

    moments = []
    for step in range(20):
        xb, yb = x[:32], y[:32]
        optimizer.zero_grad()
        cross_entropy(model(xb), yb).backward()
        moments.append(RunMoment(step, loss=1.0, lr=optimizer.param_groups[0]["lr"]))
        optimizer.step()
        warm.step()
    given = {
        "model": model,
        "data": batches_of(x, y, 32),
        "loss": cross_entropy,
        "optimizer": optimizer,
        "origin": origin,
    }
    trial = Trial(subject_of({**given, "history": tuple(moments)}), AS_IT_IS)
    assert torch.equal(trial.model[0].weight, origin["0.weight"])
    rates = []
    for step in range(1, 13):
        trial.advance(step)
        rates.append(trial.optimizer.param_groups[0]["lr"])
    assert rates[:3] == pytest.approx([0.01, 0.02, 0.03]) and rates[-1] == pytest.approx(0.1)


def test_a_gain_is_the_share_of_what_the_better_one_has_learned():
    subject = subject_of(patient(0, lambda own: torch.optim.Adam(own, 1e-2), steps=200))
    good, bad = present_score(subject), Trial(subject, AS_IT_IS).advance(1).score()
    gain = gain_of(subject, good, bad)
    assert gain.lost > 0.8 and gain.sure > 3 and gain.is_worth(0.1)
    assert gain_of(subject, good, good).lost == 0.0
    assert gain_of(subject, bad, good).lost < 0
    assert gain_of(subject, good, None).is_worth(0.1)
    assert sum(map(len, judged_parts(subject))) == 512


def test_a_training_that_blows_up_is_over_and_has_no_score():
    trial = Trial(subject_of(fresh(lr=1e30)), AS_IT_IS).advance(50)
    assert trial.diverged and trial.steps < 50 and trial.score() is None


def test_an_optimizer_that_asks_for_the_loss_several_times_is_tried():
    given = patient(0, lambda own: torch.optim.LBFGS(own, lr=0.1, max_iter=3), steps=0)
    trial = Trial(subject_of(given), AS_IT_IS).advance(5)
    assert not trial.broken and trial.losses[-1] < 0.9 * trial.losses[0]


def test_a_loss_without_a_least_is_not_judged_by_falling():
    subject = subject_of({**fresh(), "loss": lambda o, t: -o.gather(1, t[:, None]).mean()})
    low, lower = (Trial(subject, Change("steps", lr=lr)).advance(20).score() for lr in (0.1, 0.5))
    assert lower.loss < low.loss < 0
    assert not gain_of(subject, lower, low).is_worth(0.1)


def test_another_seed_is_another_order_of_the_same_batches():
    subject = subject_of(fresh())
    one, other = Trial(subject, AS_IT_IS), Trial(subject, AS_IT_IS, seed=1)
    assert one.advance(3).losses != other.advance(3).losses
    assert sorted(map(id, one._batches)) == sorted(map(id, other._batches))


def test_one_batch_of_many_places_is_judged_by_its_places():
    """A graph that is trained on whole has one sample: what its nodes say is as sure as many samples."""
    torch.manual_seed(0)
    centers = torch.randn(3, 6)
    labels = torch.randint(0, 3, (2, 300))
    nodes = centers[labels] + 0.5 * torch.randn(2, 300, 6)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3.0)

    def loss(answer, target):
        return nn.functional.cross_entropy(answer.flatten(0, -2), target.flatten())

    for _ in range(60):
        optimizer.zero_grad()
        loss(model(nodes[:1]), labels[:1]).backward()
        optimizer.step()
    found = th.diagnose(
        model, data=(nodes[:1], labels[:1]), loss=loss, optimizer=optimizer, validation=(nodes[1:], labels[1:])
    )
    assert found.findings[0].name == "step-too-large"


def test_an_overfit_run_is_not_one_that_knows_less_than_a_constant():
    """Labels at random: the run fits its own data, and an arm that fits them less has recovered nothing."""
    torch.manual_seed(0)
    x, y = torch.randn(192, 16), torch.randint(0, 2, (192,))
    other = torch.randn(192, 16), torch.randint(0, 2, (192,))
    model = torch.nn.Sequential(torch.nn.Linear(16, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2))
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(300):
        adam.zero_grad()
        rows = torch.arange(step * 32, step * 32 + 32) % 192
        torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        adam.step()
    loss = torch.nn.functional.cross_entropy
    subject = subject_of(
        {"model": model, "data": (x, y), "validation": other, "loss": loss, "optimizer": adam, "steps": 300}
    )
    run = present_score(subject)
    assert run.loss > 1.5 * judged_constant(subject)
    less = replace(run, loss=1.05 * judged_constant(subject), losses=tuple(0.5 * v for v in run.losses))
    assert not gain_of(subject, less, run).is_worth(0.1)


def test_a_batch_in_pieces_has_the_gradient_of_the_whole():
    torch.manual_seed(0)
    x = torch.randn(96, 4)
    y = x.sum(1, keepdim=True).sin()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    subject = Subject(
        model, data=(x, y), loss=nn.functional.mse_loss, optimizer=torch.optim.SGD(model.parameters(), 0.1)
    )
    batch, gradients = Batch((x[:50],), {}, y[:50]), []
    for most in (1000, 16):
        trial = Trial(subject, AS_IT_IS)
        trial._most = most
        value = trial._gradients([batch], None)
        assert value == pytest.approx(float(nn.functional.mse_loss(trial.model(x[:50]), y[:50]).detach()), rel=1e-5)
        gradients.append([p.grad.clone() for p in trial.model.parameters()])
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)
