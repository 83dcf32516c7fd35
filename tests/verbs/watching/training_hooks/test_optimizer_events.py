"""What a watch sees of a loop's own handling of gradients, and trials that do the same."""

import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.evidence.start import passes
from theodolite.evidence.trial import AS_IT_IS, Trial
from theodolite.verbs.watching.training_hooks.optimizer_events import OptimizerEvents
from theodolite.verbs.watching.watched_run import run_of, subject_of_run


def trained(clip=None, *, added_up=1, steps=40, lr=0.1, losses=1):
    """A small regression, its gradients clipped by ``clip``, each step made of several batches."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    x = torch.randn(512, 4)
    y = 10 * x.sin().sum(1, keepdim=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    watch = th.Watch(model, probe=(x[:64], y[:64]), loss=nn.functional.mse_loss, optimizer=optimizer, every=10)
    draw = torch.Generator().manual_seed(0)
    for step in range(steps):
        optimizer.zero_grad()
        for _ in range(added_up):
            rows = torch.randint(0, len(x), (16,), generator=draw)
            inputs, targets = x[rows], y[rows]
            loss = nn.functional.mse_loss(model(inputs), targets) / added_up
            for _ in range(losses - 1):
                loss.backward(retain_graph=True)
            loss.backward()
        if clip is not None:
            clip(model.parameters())
        optimizer.step()
        watch(step)
    return watch


def test_the_norm_that_gradients_are_clipped_to_is_seen():
    watch = trained(lambda p: nn.utils.clip_grad_norm_(p, 0.5))
    assert run_of(watch).events["clip norm"] == pytest.approx(0.5)
    assert "clip value" not in run_of(watch).events


def test_the_entry_that_gradients_are_clipped_to_is_seen():
    assert run_of(trained(lambda p: nn.utils.clip_grad_value_(p, 0.25))).events["clip value"] == pytest.approx(0.25)


@pytest.mark.parametrize("lr", [0.01, 0.0])
def test_gradients_that_nobody_clips_are_not_called_clipped(lr):
    """Also where the weights do not move and a gradient comes again."""
    assert not {"clip norm", "clip value"} & set(run_of(trained(lr=lr)).events)


def test_the_same_gradient_again_and_again_is_not_clipped():
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    events = OptimizerEvents(optimizer)
    for _ in range(20):
        optimizer.zero_grad()
        (weight * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        optimizer.step()
    assert "clip norm" not in events.counts()


def test_batches_added_up_before_a_step_are_counted():
    assert run_of(trained(added_up=4)).events["backward passes"] == 4


def test_two_losses_of_one_forward_pass_are_one_batch():
    assert run_of(trained(losses=2, lr=0.01)).events["backward passes"] == 1


def test_a_trial_clips_and_adds_up_as_the_run_does():
    """Gradients 100 times longer than the clip: a copy without it would take other steps."""
    watch = trained(lambda p: nn.utils.clip_grad_norm_(p, 0.5), added_up=2)
    subject = subject_of_run(watch, {name: t.clone() for name, t in watch.model.state_dict().items()})
    assert passes(subject) == 2
    trial = Trial(subject, AS_IT_IS)
    before = [p.detach().clone() for p in trial.model.parameters()]
    trial.advance(1)
    moved = torch.cat(
        [(p.detach() - q).flatten() for p, q in zip(trial.model.parameters(), before, strict=True)]
    ).norm()
    assert float(moved) == pytest.approx(0.1 * 0.5, rel=1e-3)
