"""Every shape in which people keep models and data, and every way in which they can be wrong."""

from collections import UserDict

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from theodolite.core.subject import Subject

X, Y = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)), torch.arange(10) % 2


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, left, right):
        return self.a(left) + self.b(right)


class Named(nn.Module):
    """As transformers do: keywords in, a mapping out."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(5, 4), nn.Linear(4, 2)

    def forward(self, input_ids, attention_mask=None):
        return UserDict(logits=self.head(self.embedding(input_ids).mean(1)), hidden=(self.embedding(input_ids),))


@pytest.mark.parametrize(
    "data",
    [
        (X, Y),
        (X.numpy(), Y.numpy()),
        {"x": X, "y": Y},
        DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True),
        TensorDataset(X, Y),
        [(X[:5], Y[:5]), (X[5:], Y[5:])],
        [{"input": X[:5], "labels": Y[:5]}, {"input": X[5:], "labels": Y[5:]}],
        [((X,), Y)],
    ],
    ids=["tensors", "arrays", "columns", "loader", "dataset", "list", "mappings", "nested"],
)
def test_data_in_every_form(data):
    subject = Subject(net(), data=data, loss=F.cross_entropy)
    assert sum(len(batch) for batch in subject.batches()) == 10
    assert sum(len(batch) for batch in subject.batches()) == 10  # and again
    assert subject.has("loss")
    assert all(torch.isfinite(subject.loss_on(batch)) for batch in subject.batches())


def test_inputs_alone_have_no_loss():
    subject = Subject(net(), data=X, loss=F.cross_entropy)
    assert subject.has("data")
    assert not subject.has("loss")
    assert not subject.has("lr")


def test_several_inputs():
    subject = Subject(TwoInputs(), data=(X, X, Y), loss=F.cross_entropy)
    assert subject.has("loss")
    Subject(TwoInputs(), data=[{"left": X, "right": X, "extra": X, "target": Y}], loss=F.cross_entropy)
    Subject(TwoInputs(), data=[((X, X), Y)], loss=F.cross_entropy)


def test_mappings_in_and_out():
    ids = torch.arange(12).reshape(4, 3) % 5
    batch = UserDict(input_ids=ids, attention_mask=torch.ones_like(ids), labels=torch.tensor([0, 1, 0, 1]))
    subject = Subject(Named(), data=[batch], loss=F.cross_entropy)
    assert subject.loss_on(next(subject.batches())).ndim == 0
    with pytest.raises(ValueError, match="expected batches with a key among"):
        Subject(Named(), data=[{"tokens": ids, "mask": ids}])


def test_half_precision_and_integer_targets():
    subject = Subject(net().to(torch.bfloat16), data=(X.double(), Y), loss=F.cross_entropy)
    assert next(subject.batches()).inputs[0].dtype == torch.bfloat16
    assert next(subject.batches()).target.dtype == torch.int64


def test_tied_weights_are_one_weight_and_frozen_ones_count():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    model[0].weight.requires_grad_(False)
    assert list(Subject(model).weights) == ["0.weight", "0.bias", "1.bias"]


def test_the_mode_is_as_before():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2)).train()
    mean = model[1].running_mean.clone()
    Subject(model, data=(X, Y), loss=F.cross_entropy)
    assert model.training
    assert torch.equal(mean, model[1].running_mean)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x) + torch.randn(len(x), 2)


def test_a_model_that_is_random_in_eval_mode_is_taken_and_said_to_be():
    assert "differ by up to" in Subject(Noisy(), data=X).seen["random"]
    assert "random" not in Subject(net(), data=X).seen


def with_nan():
    model = net()
    with torch.no_grad():
        model[2].weight[0, 1] = float("nan")
    return model


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Subject(with_nan()), "1 of 8 values of 2.weight NaN"),
        (lambda: Subject(net(), data=X[:, :2]), r"got 2 from inputs of shape \(10, 2\); pass"),
        (lambda: Subject(net(), data=X * float("nan")), "expected finite outputs"),
        (lambda: Subject(net(), data=[]), "expected data with at least one sample"),
        (lambda: Subject(net(), data=X[:0]), "expected data with at least one sample"),
        (lambda: Subject(net(), data=DataLoader(TensorDataset(X), batch_size=64, drop_last=True)), "drop_last"),
        (lambda: Subject(net(), data=(x for x in [X])), "more than once"),
        (lambda: Subject(net(), data=(X, Y[:3])), "columns of one length"),
        (lambda: Subject(net(), data=7), "expected data as a DataLoader"),
        (lambda: Subject(net(), data=np.array(["a"])), "expected arrays of numbers"),
        (
            lambda: Subject(net(), data=(X, Y), loss=lambda a, b: F.cross_entropy(a, b, reduction="none")),
            "one finite number",
        ),
        (lambda: Subject(net(), data=(X, X), loss=F.cross_entropy), "expected a loss"),
        (lambda: Subject(TwoInputs(), data=X), "TypeError"),
        (lambda: Subject(nn.LazyLinear(3)), "lazy module"),
        (lambda: Subject(nn.Linear(3, 2, device="meta")), "meta device"),
        (lambda: Subject(net(), lr=-1.0), "positive learning rate"),
        (lambda: Subject("model"), "expected an nn.Module"),
        (lambda: Subject(None), "expected a model"),
    ],
)
def test_bad_input_gets_one_clear_line(make, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        make()
    assert str(caught.value).startswith("expected")
    assert "\n" not in str(caught.value)


def test_a_loader_is_not_started_again_for_every_question():
    class Counted(torch.utils.data.DataLoader):
        started = 0

        def __iter__(self):
            type(self).started += 1
            return super().__iter__()

    rows = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.zeros(8, dtype=torch.long))
    subject = Subject(nn.Linear(3, 2), data=Counted(rows, batch_size=4), loss=nn.functional.cross_entropy)
    before = Counted.started
    assert all(subject.has(need) for need in ("data", "loss", "data", "loss"))
    assert Counted.started - before <= 2


def test_a_loss_may_take_all_that_a_model_answers_by_name():
    ids = torch.arange(20).reshape(10, 2) % 5

    def loss(answer, target):
        return F.cross_entropy(answer["logits"], target) + answer["hidden"][0].square().mean()

    one = Subject(Named(), data=[{"input_ids": ids, "labels": Y}], loss=loss)
    batch = one.data.first()
    assert one.loss_on(batch).item() == pytest.approx(loss(one.output(batch), Y).item())
    plain = Subject(Named(), data=[{"input_ids": ids, "labels": Y}], loss=F.cross_entropy)
    assert isinstance(plain.answer(batch), torch.Tensor)


def test_several_inputs_may_be_a_tuple_of_their_own():
    two = Subject(TwoInputs(), data=((X, X), Y), loss=F.cross_entropy)
    assert sum(len(batch) for batch in two.batches()) == 10
