"""A watch in its plain form: the optimizer's own numbers, held-out scores, events, and the diagnosis of a run."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.trained import clouds, network
from fixtures.watched import Watch
from theodolite.evidence.batches import batches
from theodolite.evidence.start import origin_tensors, steps_made
from theodolite.verbs.watching.training_hooks.optimizer_events import OptimizerEvents
from theodolite.verbs.watching.watched_run import subject_of_run


def trained(optimizer_of, *, clear, steps=120, every=20, accumulate=1, schedule_of=None, watching=True):
    x, y = clouds(0, 1024)
    model = network(0)
    optimizer = optimizer_of(model.parameters())
    schedule = None if schedule_of is None else schedule_of(optimizer)
    validation = clouds(1000, 256)
    watch = None
    if watching:
        watch = Watch(
            model,
            optimizer=optimizer,
            probe=(x[:512], y[:512]),
            validation=validation,
            every=every,
            level="cheap",
            batch_size=32,
        )
        watch(0)
    for step in range(steps):
        rows = slice(step * 32 % 1024, step * 32 % 1024 + 32)
        if step % accumulate == 0:
            clear(model, optimizer, step)
        (cross_entropy(model(x[rows]), y[rows]) / accumulate).backward()
        if (step + 1) % accumulate == 0:
            optimizer.step()
            if schedule is not None:
                schedule.step()
        if watch is not None:
            watch(step + 1)
    return model, optimizer, watch


def zero(model, optimizer, step):
    optimizer.zero_grad()


def zero_in_place(model, optimizer, step):
    optimizer.zero_grad(set_to_none=False)


def zero_through_data(model, optimizer, step):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.data.zero_()


def never(model, optimizer, step):
    pass


def descent(own):
    return torch.optim.SGD(own, 0.1, momentum=0.5)


@pytest.mark.parametrize("clear", [zero, zero_in_place, zero_through_data])
@pytest.mark.parametrize("accumulate", [1, 4])
def test_a_gradient_that_is_cleared_is_never_counted(clear, accumulate):
    _, _, watch = trained(descent, clear=clear, accumulate=accumulate)
    expected = {"optimizer steps": 120 / accumulate, "gradient kept": 0, "backward passes": accumulate}
    assert watch.events.counts() == expected


def test_a_gradient_that_is_kept_is_counted_at_every_step_but_the_last():
    _, _, watch = trained(descent, clear=never, steps=40)
    assert watch.events.counts() == {"optimizer steps": 40, "gradient kept": 39, "backward passes": 1}
    assert watch.diagnosis.findings[0].name == "gradient-accumulates"
    assert watch.diagnosis.findings[0].suggested == {"zero_grad": True}


def test_gradients_that_are_asked_for_between_steps_do_not_count():
    x, y = clouds(0, 64)
    model = network(0)
    optimizer = descent(model.parameters())
    events = OptimizerEvents(optimizer)
    for _ in range(5):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
        torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
    assert events.counts() == {"optimizer steps": 5, "gradient kept": 0, "backward passes": 1}
    events.remove()
    assert not optimizer._optimizer_step_post_hooks
    assert not any(p._backward_hooks or p._post_accumulate_grad_hooks for p in model.parameters())


def test_step_size_and_momentum_are_the_optimizers_own():
    _, _, watch = trained(
        descent, clear=zero, schedule_of=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 40, gamma=0.1)
    )
    assert [record.lr for record in watch.records] == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001, 1e-4])
    assert {record.momentum for record in watch.records} == {0.5}


def test_held_out_scores_are_recorded_at_each_look():
    _, _, watch = trained(descent, clear=zero)
    first, last = watch.records[0].facts, watch.records[-1].facts
    assert last["validation_loss"] < 0.5 * first["validation_loss"]
    assert last["validation_accuracy"] > 0.8 > first["validation_accuracy"]
    assert last["accuracy"] > 0.8


def test_the_subject_holds_start_run_and_the_batches_of_training():
    _, optimizer, watch = trained(descent, clear=zero)
    subject = subject_of_run(watch, watch._carried.origin)
    assert steps_made(subject) == 120 and [m.step for m in subject.run.moments] == list(range(0, 121, 20))
    assert subject.run.moments[-1].validation_accuracy > 0.8
    torch.testing.assert_close(origin_tensors(subject)["0.weight"], network(0)[0].weight.detach())
    assert subject.optimizer is optimizer
    first = batches(subject)[0]
    x, y = clouds(0, 1024)
    assert torch.equal(first.inputs[0], x[:32]) and torch.equal(first.target, y[:32])


def test_a_healthy_run_has_no_finding_and_a_hot_one_has_its_cause_first():
    _, _, healthy = trained(descent, clear=zero, steps=200)
    assert not [f for f in healthy.diagnosis.findings if f.severity != "note" and f.name != "units-dead"]
    _, _, hot = trained(lambda own: torch.optim.SGD(own, 30.0), clear=zero)
    assert hot.diagnosis.findings[0].name == "step-too-large"
    assert 0 < hot.diagnosis.findings[0].suggested["lr"] < 10


def test_training_is_bit_identical_under_a_watch_that_is_asked_for_its_diagnosis():
    def run(watching):
        torch.manual_seed(5)
        x, y = clouds(0, 512)
        model = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 5))
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
        watch = None
        if watching:
            watch = Watch(
                model,
                optimizer=optimizer,
                probe=(x[:128], y[:128]),
                validation=(x[:64], y[:64]),
                every=10,
                level="cheap",
            )
        for step in range(40):
            optimizer.zero_grad()
            cross_entropy(model(x[step * 8 : step * 8 + 32]), y[step * 8 : step * 8 + 32]).backward()
            optimizer.step()
            schedule.step()
            if watch is not None:
                watch(step)
                if step == 20:
                    assert isinstance(watch.diagnosis.findings, tuple)
        return copy.deepcopy(model.state_dict()), optimizer.state_dict()["state"], torch.get_rng_state()

    (plain, moments, drawn), (watched, others, also) = run(False), run(True)
    assert all(torch.equal(plain[name], watched[name]) for name in plain)
    assert all(torch.equal(moments[i][k], others[i][k]) for i in moments for k in moments[i])
    assert torch.equal(drawn, also)


def test_the_page_of_a_hot_run_opens_with_its_diagnosis_and_the_loss_on_both_sides():
    _, _, watch = trained(lambda p: torch.optim.SGD(p, lr=3.0), clear=zero, steps=60, every=10)
    assert watch.diagnosis is watch.diagnosis  # made once for each state of the run
    page = watch.html().split("</style>")[1]
    assert page.index("th-v-critical") < page.index("learning rate of 3 is too large") < page.rindex("held out")
    assert page.index("learning rate of 3 is too large") < page.index("Phase:") < page.index("Over the steps")
