"""Counts of confusion and Matthews' coefficient against scikit-learn and against the correlation of two bits."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, matthews_corrcoef

from theodolite.measure.collapse import confusion_counts, matthews_coefficient


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_as_scikit_learn(classes):
    generator = np.random.default_rng(classes)
    y, said = generator.integers(0, classes, (2, 200))
    said = np.where(generator.random(200) < 0.5, y, said)
    counts = confusion_counts(torch.from_numpy(y), torch.from_numpy(said), classes=classes)
    assert (counts.numpy() == confusion_matrix(y, said)).all()
    assert matthews_coefficient(counts) == pytest.approx(matthews_corrcoef(y, said), rel=1e-12)


def test_two_classes_are_a_correlation_whatever_the_number_of_samples():
    tp, fn, fp, tn = 90e9, 10e9, 5e9, 45e9
    known = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert matthews_coefficient([[tn, fp], [fn, tp]]) == pytest.approx(known, rel=1e-12)


def test_one_class_alone_is_chance():
    assert matthews_coefficient([[5, 0], [5, 0]]) == 0.0
    assert matthews_coefficient([[10, 0], [0, 0]]) == 0.0


@pytest.mark.parametrize(
    "counts", [[1, 2], [[1, 2, 3]], [[-1, 2], [0, 1]], [[0, 0], [0, 0]], [[1.0, math.nan], [0, 1]]]
)
def test_wrong_counts_are_one_line(counts):
    with pytest.raises(ValueError, match="^expected") as caught:
        matthews_coefficient(counts)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="^expected"):
        confusion_counts(torch.tensor([0, 1]), torch.tensor([0]))
    with pytest.raises(ValueError, match="^expected"):
        confusion_counts(torch.tensor([0, 3]), torch.tensor([0, 1]), classes=2)
