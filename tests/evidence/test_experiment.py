"""The cause is the smallest intervention that recovers most; a run near its best arm has none."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from fixtures.judging import subject_of
from fixtures.trained import batches_of, clouds, network, patient, trained
from theodolite import catalogue
from theodolite.ailments.regularised_too_hard import with_decay
from theodolite.core.subject import Subject
from theodolite.evidence.experiment import Experiment, _catches_up, _recovered, experiment, has_won, longest_trial
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.loss_checks import trained_beside
from theodolite.evidence.task import Score
from theodolite.evidence.trial import AS_IT_IS, Change
from theodolite.evidence.work import Work, work_of


def pool(subject, *names):
    found = []
    for name in names or ("step-too-large", "step-too-small", "batch-noise", "trained-too-short", "inputs-not-scaled"):
        found += list(catalogue.ailment(name).interventions(subject))
    return found


def test_a_run_that_has_won_is_not_tried():
    subject = subject_of(patient(0, lambda own: torch.optim.Adam(own, 3e-3)))
    assert has_won(subject)
    made = experiment(subject, pool(subject))
    assert made.cause is None and not made.arms


def test_a_hot_run_and_a_cold_one_have_their_cause():
    hot = subject_of(patient(0, lambda own: torch.optim.SGD(own, 30.0)))
    cause = experiment(hot, pool(hot)).cause
    assert cause.intervention.change.lr < 1 and cause.severity == "critical"
    cold = subject_of(patient(0, lambda own: torch.optim.SGD(own, 1e-4)))
    assert experiment(cold, pool(cold)).cause.intervention.change.lr > 1


def _begun_anew(every):
    """A run of 240 steps whose weights are drawn anew every so often."""
    x, y = clouds(0, 1024)
    model, made = network(0), [0]
    fresh = {name: value.clone() for name, value in model.state_dict().items()}

    def counted():
        made[0] += 1
        if made[0] % every == 0:
            model.load_state_dict(fresh)

    stepper, data = torch.optim.SGD(model.parameters(), 0.03), batches_of(x, y, 32)
    run = trained(model, stepper, data, validation=clouds(1000, 512), steps=240, schedule=counted)
    subject = subject_of(run)
    subject.seen["work"] = Work(0.1)  # for copies of fewer than half of its steps
    return subject


def test_a_run_that_a_copy_is_ahead_of_in_fewer_steps_is_followed_to_its_end():
    again, whole = (_begun_anew(every) for every in (41, 160))
    one, other = (experiment(subject, pool(subject, "trained-too-short")) for subject in (again, whole))
    assert not one.reproduced and one.cause is None and one.plain.steps == 240
    assert other.reproduced and other.plain.steps < 120


def test_labels_that_cannot_be_learned_have_no_cause():
    subject = subject_of(patient(0, lambda own: torch.optim.SGD(own, 0.05), steps=100, noise=1.0))
    assert experiment(subject, pool(subject)).cause is None


def test_trials_end_within_their_work_and_say_when_a_step_is_too_dear():
    subject = subject_of(patient(0, lambda own: torch.optim.SGD(own, 1e-4)))
    subject.seen["work"] = Work(0.5)
    experiment(subject, pool(subject))
    assert work_of(subject).spent < 1.0
    poor = subject_of(patient(0, lambda own: torch.optim.SGD(own, 1e-4)))
    poor.seen["work"] = Work(0.005)
    assert longest_trial(poor) < 4
    assert "costs too much" in experiment(poor, pool(poor)).why_not


def test_a_copy_on_thinned_batches_that_comes_as_far_as_the_run_is_held_against_a_plain_copy():
    subject = subject_of(patient(0, lambda own: torch.optim.SGD(own, 0.1)))
    found, one = Experiment(subject), Intervention(AS_IT_IS, lambda outcome: None)
    run, less, more = (Score(loss, 0.5, 8, (loss,), (0.5,), (8.0,)) for loss in (1.0, 0.9, 1.1))
    assert not _catches_up(found, one, less, run)
    subject.seen["thinned"] = True
    assert _catches_up(found, one, less, run)
    assert not _catches_up(found, one, more, run)
    assert not _catches_up(found, one, less, None)


@pytest.mark.parametrize(("decay", "named"), [(7.0, "weaker decay"), (0.3, "lr x")])
def test_a_smaller_step_that_only_takes_off_less_is_not_the_cause(decay, named):
    """A step takes off the product of its size and the decay: with as much taken off a smaller one must help, too."""
    lr = 0.1 if decay > 1 else 1.0
    subject = subject_of(patient(0, lambda own: torch.optim.AdamW(own, lr, weight_decay=decay)))
    weaker = Change("weaker decay", prepare=partial(with_decay, 0.8 * decay))
    asked = Intervention(weaker, found_by("", "", {}), rank=45, sign=True)  # it recovers some, the smaller step more
    found = experiment(subject, [*pool(subject, "step-too-large"), asked])
    assert found.cause.trial.change.name.startswith(named)
    assert any(name.endswith("as much decay") for name in found.arms) == (decay > 1)


def _asked(network_of_the_loss, loss):
    """A regression whose loss holds another network."""
    x, y = clouds(0, 512)
    model = network(0)
    return subject_of(
        {
            "model": model,
            "data": (x, y),
            "loss": lambda o, y: loss(network_of_the_loss, o, y),
            "optimizer": torch.optim.Adam(model.parameters(), 1e-2),
        }
    )


def test_a_target_network_stands_still_for_copies_and_a_critic_does_not():
    """Of a target network no gradient is asked; that of a critic is what the generator learns by, and it learns against it."""
    torch.manual_seed(0)
    classes = network(0)(clouds(0, 4)[0]).shape[1]
    other = torch.nn.Linear(classes, 1)

    def bootstrapped(old, o, y):
        with torch.no_grad():
            more = old(torch.zeros(len(o), classes))
        return torch.nn.functional.mse_loss(o, torch.nn.functional.one_hot(y, classes) + 0.1 * more)

    def fooled(critic, o, y):
        return torch.nn.functional.softplus(-critic(o)).mean()

    target, critic = _asked(other, bootstrapped), _asked(other, fooled)
    assert not trained_beside(target) and trained_beside(critic)
    assert experiment(target, pool(target, "step-too-small")).reproduced
    assert "network of its own" in experiment(critic, pool(critic, "step-too-small")).why_not


def test_a_loss_without_a_least_is_not_tried():
    """Logarithms of probabilities times advantages of both signs: an arm that goes faster falls further, and is no better."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(512, 4, generator=g)
    told = torch.stack([torch.randint(3, (512,), generator=g).float(), torch.randn(512, generator=g)], 1)

    def policy(o, y):
        return -(o.log_softmax(-1).gather(1, y[:, :1].long())[:, 0] * y[:, 1]).mean()

    def bounded(o, y):
        return -(o.softmax(-1).gather(1, y[:, :1].long())[:, 0] * y[:, 1]).mean()

    def density(o, y):
        return 0.5 * (o[:, 1] + (y[:, 1] - o[:, 0]).square() / o[:, 1].exp()).mean()

    def made(loss):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        stepper = torch.optim.Adam(model.parameters(), 1e-2)
        return subject_of({"model": model, "data": (x, told), "loss": loss, "optimizer": stepper})

    endless, *others = (made(loss) for loss in (policy, bounded, density))
    assert "falls without end" in experiment(endless, pool(endless, "step-too-small")).why_not
    assert not any(experiment(subject, pool(subject, "step-too-small")).why_not for subject in others)


def test_a_run_without_a_reference_is_not_said_to_have_learned_more_than_its_copies():
    subject = subject_of(patient(0, lambda own: torch.optim.Adam(own, 3e-3)))
    subject.seen["held-out constant"], subject.seen["judged majority"] = (float("nan"), []), float("nan")
    found = Experiment(subject)
    found.trial(AS_IT_IS, 4)
    assert not found.too_short


def test_of_a_language_model_that_learned_nothing_arms_recover_what_the_loss_says():
    """Accuracies of a few more answers that are right by chance would make a warm-up as good as a smaller step."""
    tokens = torch.randint(4, (16, 8))
    model = torch.nn.Sequential(torch.nn.Embedding(4, 8), torch.nn.Linear(8, 4))
    subject = Subject(
        model,
        data=[(tokens, tokens)],
        loss=lambda outputs, target: torch.nn.functional.cross_entropy(outputs.flatten(0, 1), target.flatten()),
    )
    subject.seen["held-out constant"], subject.seen["judged majority"] = (4.4, []), 0.03

    def score(loss, accuracy):
        return Score(loss, accuracy, 8, (loss,), (accuracy,), (8.0,))

    def arm(name, found):
        return SimpleNamespace(
            trial=SimpleNamespace(change=SimpleNamespace(name=name), score=lambda: found),
            intervention=SimpleNamespace(alike=True),
        )

    arms = [arm("warm-up", score(4.5, 0.05)), arm("lr x 0.1", score(4.42, 0.05)), arm("lr x 0.01", score(4.4, 0.04))]
    shares = _recovered(subject, arms, score(4.6, 0.04))
    assert shares == pytest.approx({"warm-up": 0.5, "lr x 0.1": 0.9, "lr x 0.01": 1.0})
    learned = _recovered(subject, [*arms, arm("lr x 0.001", score(3.4, 0.3))], score(4.6, 0.04))
    assert learned == pytest.approx({"warm-up": -0.1, "lr x 0.1": -0.02, "lr x 0.01": 0.0, "lr x 0.001": 1.0})
