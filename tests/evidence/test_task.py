"""What outputs and targets mean, found from the loss: against tasks whose meaning is known, and scores against brute force."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.answering import Reshaped, subject
from theodolite.evidence.batches import batches, samples
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.task import answers, has_rare_classes, majority, score_of, skill, task
from theodolite.io.batches import Batch

G = torch.Generator().manual_seed(0)


def tokens(o, y):
    return F.cross_entropy(o.flatten(0, 1), y.flatten(), ignore_index=-100)


def test_classes_are_found_on_whatever_axis_they_lie():
    y = torch.randint(0, 3, (96,), generator=G)
    assert (
        task(subject(Reshaped(3), y, F.cross_entropy)).kind,
        task(subject(Reshaped(3), y, F.cross_entropy)).axis,
    ) == ("classes", 1)
    pixels = torch.randint(0, 3, (96, 5, 5), generator=G)
    assert task(subject(Reshaped(3, 5, 5), pixels, F.cross_entropy)).axis == 1
    words = torch.randint(0, 7, (96, 6), generator=G)
    found = task(subject(Reshaped(6, 7), words, tokens))
    assert (found.kind, found.axis) == ("classes", 2)


def test_targets_that_the_loss_leaves_out_do_not_count():
    words = torch.randint(0, 7, (96, 6), generator=G)
    words[torch.rand(96, 6, generator=G) < 0.5] = -100
    one = subject(Reshaped(6, 7), words, tokens)
    assert task(one).ignored == (-100,)
    found = score_of(one, batches(one))
    answer = torch.cat([one.answer(b) for b in batches(one)])
    target = torch.cat([b.target for b in batches(one)])
    counts = target != -100
    assert found.accuracy == pytest.approx(float((answer.argmax(-1) == target)[counts].double().mean()))
    assert found.loss == pytest.approx(float(tokens(answer.detach(), target)), rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "threshold"),
    [
        (F.binary_cross_entropy_with_logits, 0.0),
        (F.mse_loss, 0.5),
        (lambda o, y: F.binary_cross_entropy(o.sigmoid(), y), 0.0),
    ],
)
def test_yes_begins_where_the_loss_says(loss, threshold):
    y = torch.randint(0, 2, (96, 1), generator=G).float()
    found = task(subject(Reshaped(1), y, loss))
    assert (found.kind, found.threshold) == ("labels", threshold)


def test_distances_say_yes_below_where_both_labels_cost_the_same():
    def contrasted(d, y):
        return (y * d.square() + (1 - y) * (3 - d).clamp(min=0).square()).mean()

    y = torch.randint(0, 2, (96, 1), generator=G).float()
    found = task(subject(Reshaped(1), y, contrasted))
    assert found.kind == "labels" and found.below and found.threshold == pytest.approx(1.5, abs=1e-3)
    assert found.right(torch.tensor([[0.2], [2.0]]), torch.tensor([[1.0], [1.0]])).tolist() == [True, False]


def test_numbers_tuples_sums_and_what_cannot_be_told():
    y = torch.randn(96, 2, generator=G)
    assert task(subject(Reshaped(2), y, F.mse_loss)).kind == "numbers"
    two = subject(Reshaped(2, parts=2), y, lambda o, t: F.mse_loss(o[1], t) + o[0].square().mean())
    assert (task(two).kind, task(two).member) in (("numbers", 0), ("numbers", 1))
    assert task(subject(Reshaped(2), y, lambda o, t: (o - t).square().sum())).summed
    assert task(subject(Reshaped(5), y, lambda o, t: o.square().mean())).kind == "unknown"


@pytest.mark.parametrize(("count", "rare"), [(7, False), (60, True)])
def test_classes_are_rare_where_a_sample_does_not_tell_how_often_each_occurs(count, rare):
    words = torch.randint(0, count, (96, 6), generator=G)
    assert has_rare_classes(subject(Reshaped(6, count), words, tokens)) is rare


def test_skill_is_the_better_of_loss_and_accuracy():
    y = torch.randint(0, 2, (96,), generator=G)
    one = subject(Reshaped(2), y, F.cross_entropy)
    found = score_of(one, batches(one))
    assert skill(one, found, found.loss) >= (found.accuracy - majority(one)) / (1 - majority(one))
    assert math.isnan(skill(one, None, 1.0))


def compared(o, _):
    """Each sample's answer against those of the others of its batch, with nothing in the place of targets."""
    o = F.normalize(o, dim=-1)
    return F.cross_entropy(o[:, 0] @ o[:, 1].T / 0.5, torch.arange(len(o)))


def test_a_loss_without_labels_is_told_by_what_it_does_with_targets_and_other_samples():
    nothing = torch.zeros(96, dtype=torch.long)
    one = subject(Reshaped(2, 8), nothing, compared)
    found = task(one)
    assert found.kind == "unknown" and found.coupled and "does not read" in found.why
    assert samples(one).target is None
    assert constant_loss(one) == pytest.approx(math.log(24))  # equal answers: each of the 24 held out is as likely
    kept = subject(Reshaped(3, 4), torch.zeros(96), lambda o, _: F.triplet_margin_loss(o[:, 0], o[:, 1], o[:, 2]))
    assert not task(kept).coupled


def test_weights_and_roots_do_not_couple_samples():
    y = torch.randint(0, 3, (96,), generator=G)
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 0.2]))
    assert not task(subject(Reshaped(3), y, weighted)).coupled
    numbers = torch.randn(96, 1, generator=G)
    assert not task(subject(Reshaped(1), numbers, lambda o, t: F.mse_loss(o, t).sqrt())).coupled


def test_outputs_that_are_rates_are_not_taken_for_the_targets():
    counts = torch.poisson(torch.full((96, 1), 2.0), generator=G)
    assert task(subject(Reshaped(1), counts, nn.PoissonNLLLoss())).kind == "unknown"
    assert task(subject(Reshaped(1), counts, F.mse_loss)).kind == "numbers"
    sides = torch.where(torch.randn(96, 1, generator=G) > 0, 1.0, -1.0)
    assert task(subject(Reshaped(1), sides, lambda o, t: F.relu(1 - o * t).mean())).kind == "unknown"
    grades = torch.randint(4, (96, 5), generator=G).float()
    in_order = subject(Reshaped(5), grades, lambda o, t: -(t.softmax(-1) * o.log_softmax(-1)).sum(-1).mean())
    assert task(in_order).kind == "unknown"
    soft = torch.rand(96, 2, generator=G)
    assert task(subject(Reshaped(2), soft, F.binary_cross_entropy_with_logits)).kind == "unknown"


@pytest.mark.parametrize("whole", [Reshaped(3), nn.Sequential(Reshaped(3), nn.Flatten(0))])
def test_answers_of_several_parts_in_one_pass_are_those_of_each(whole):
    """Also of a model that does not answer by rows: it is asked part by part."""
    one = subject(whole, torch.randint(0, 3, (96,), generator=G), nn.CrossEntropyLoss())
    cut = [
        Batch((torch.randn(n, *batches(one)[0].inputs[0].shape[1:], generator=G),), {}, None) for n in (5, 5, 5, 5, 3)
    ]
    cut = [replace(batch, target=torch.zeros(len(batch.inputs[0]), dtype=torch.long)) for batch in cut]
    with torch.no_grad():
        alone, together = ([a for _, a in answers(one, cut, one.model, fold)] for fold in (1, 2))
    assert len(alone) == len(together) == 5
    for a, b in zip(alone, together, strict=True):
        torch.testing.assert_close(a, b)
