"""The reservoir of a watch: the batches that training really had, targets proven by the gradient, and nothing disturbed."""

import copy
import types

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from fixtures.trained import clouds, network
from theodolite.verbs.watching.training_hooks.training_batches import TrainingBatches


def loop(model, batches, loss=cross_entropy, scale=1.0):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for features, wanted in batches:
        decoy = wanted.flip(0)  # of the same shape and type, and not the target
        optimizer.zero_grad()
        (scale * loss(model(features), wanted)).backward()
        optimizer.step()
    return decoy


def some(count=6, size=16):
    x, y = clouds(0, count * size)
    return [(x[i : i + size], y[i : i + size]) for i in range(0, count * size, size)]


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_inputs_and_targets_are_those_of_training(scale):
    model = network(0)
    seen = TrainingBatches(model, cross_entropy)
    loop(model, some(), scale=scale)
    assert seen.batch_size == 16 and len(seen.kept) == 6
    for kept, (x, y) in zip(seen.kept, some(), strict=True):
        assert torch.equal(kept.inputs[0], x) and torch.equal(kept.target, y)


def test_weights_are_bit_identical_with_and_without():
    plain, watched = network(0), network(0)
    TrainingBatches(watched, cross_entropy)
    loop(plain, some())
    loop(watched, some())
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), watched.parameters(), strict=True))


def test_a_target_that_no_variable_holds_is_not_made_up():
    model = network(0)
    seen = TrainingBatches(model, lambda o, y: mse_loss(o, y))  # not the loss that training uses
    loop(model, some())
    assert not seen.kept and seen.batch_size == 16


@pytest.mark.filterwarnings("error")
def test_rows_of_a_column_of_single_numbers_are_found():
    """Ids of nodes or of users, or one number a sample: such a column has one axis."""
    x, y = torch.arange(96), torch.arange(96) % 3
    model = nn.Embedding(96, 3)
    seen = TrainingBatches(model, cross_entropy)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for rows in torch.randperm(96, generator=torch.Generator().manual_seed(0)).split(16):
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    assert len(seen.kept) == 6 and all(torch.equal(b.target, b.inputs[0] % 3) for b in seen.kept)


def test_evaluation_looks_and_copies_are_no_training():
    model = network(0)
    seen = TrainingBatches(model, cross_entropy)
    x, y = clouds(0, 16)
    with torch.no_grad():
        model(x)
    with seen.aside():
        cross_entropy(model(x), y).backward()
    copied = copy.deepcopy(model)
    cross_entropy(copied(x), y).backward()
    assert not seen.sizes and not seen.kept


def test_dictionaries_tuples_and_keywords_are_seen():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network(0)

        def forward(self, features, scale=None):
            return self.inner(features * scale)

    model = Named()
    seen = TrainingBatches(model, cross_entropy)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in some(3):
        batch = {"x": x, "labels": y}
        optimizer.zero_grad()
        cross_entropy(model(batch["x"], scale=torch.ones(len(x), 1)), batch["labels"]).backward()
        optimizer.step()
    assert len(seen.kept) == 3 and set(seen.kept[0].keywords) == {"scale"}
    assert torch.equal(seen.kept[2].target, some(3)[2][1])


def test_rows_that_are_picked_in_passing_are_found_in_their_columns():
    x, y = clouds(0, 256)
    model = network(0)
    seen = TrainingBatches(model, cross_entropy)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    generator = torch.Generator().manual_seed(3)
    orders = [torch.randperm(256, generator=generator)[:16] for _ in range(4)]
    for rows in orders:
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    assert len(seen.kept) == 4
    assert all(torch.equal(kept.target, y[rows]) for kept, rows in zip(seen.kept, orders, strict=True))


def test_one_output_of_one_sample_has_its_own_target():
    # any gradient of one number is a multiple of any other: of a batch of one the input must not pass for the target
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    seen = TrainingBatches(model, mse_loss)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = torch.randn(6, 5), torch.randn(6, 1)
    for features, wanted in zip(x.split(1), y.split(1), strict=True):
        optimizer.zero_grad()
        mse_loss(model(features), wanted).backward()
        optimizer.step()
    assert torch.equal(torch.cat([kept.target for kept in seen.kept]), y)


@pytest.mark.parametrize("bound", [False, True])
def test_a_copy_of_a_training_does_not_run_a_forward_that_holds_the_original(bound):
    from theodolite.measure.dynamics.training_copies import copied_training

    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    plain = model.forward
    model.forward = types.MethodType(lambda self, x: plain(x), model) if bound else lambda x: plain(x)
    copied, stepper = copied_training(model, torch.optim.SGD(model.parameters(), lr=0.1))
    copied(torch.ones(4, 3)).sum().backward()
    assert model.weight.grad is None and copied.weight.grad is not None
    stepper.step()
    assert not torch.equal(copied.weight, model.weight)


def test_labels_are_seen_where_the_model_keeps_its_answer_to_itself():
    class Fused(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, x, labels):
            return {"loss": nn.functional.cross_entropy(self.inner(x), labels), "logits": None}

    model = Fused()
    heard = []
    seen = TrainingBatches(model, nn.functional.cross_entropy, lambda value, batch: heard.append(float(value)))
    x, y = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
    losses = [model(x=x, labels=y)["loss"] for _ in range(3)]
    assert len(seen.kept) == 3 and torch.equal(seen.kept[0].target, y)
    assert heard == [float(loss.detach()) for loss in losses[1:]]
