"""Whether targets are classes, and which layer reads them."""

import pytest
import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.instruments._common.classes import classes_of, classifier_of


def subject(y, model=None):
    torch.manual_seed(0)
    return Subject(model or nn.Linear(4, 3), data=(torch.randn(len(y), 4), y))


def test_whole_numbers_among_the_logits_are_classes():
    assert classes_of(subject(torch.tensor([0, 2, 1, 2]))) == 3
    assert classes_of(subject(torch.tensor([0, 0, 0, 0]))) == 3  # as many as logits, seen or not


@pytest.mark.parametrize(
    "y",
    [torch.tensor([0.0, 1.0]), torch.tensor([0, 3]), torch.tensor([-1, 0]), torch.tensor([[0, 1], [1, 0]])],
    ids=["numbers", "beyond", "negative", "a table"],
)
def test_other_targets_are_not(y):
    assert classes_of(subject(y)) is None


def test_the_classifier_is_the_last_layer_with_a_row_a_class():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 5))
    name, layer = classifier_of(subject(torch.tensor([0, 1]), model), 3)
    assert name == "2" and layer is model[2]
    assert classifier_of(subject(torch.tensor([0, 1]), model), 7) is None
