"""Shapes by their evidence, and samples as tensors or words why not."""

import math

import numpy as np
import pytest
import torch

from theodolite.bayes.results import new_inputs, samples_of, selection
from theodolite.core.reading import Estimate


def test_shapes_are_ordered_and_weighted_by_their_evidence():
    found = selection([((), 1.0, Estimate(-1000.0, 0.0)), ((5, 5), 2.0, Estimate(-999.0, 0.0))], bound=-990.0)
    assert found.best.widths == (5, 5)
    assert [row.posterior_weight for row in found.candidates] == pytest.approx(
        [1 / (1 + math.exp(-1)), 1 / (1 + math.e)]
    )
    assert str(found).endswith("exceeds -990.0000")
    with pytest.raises(ValueError, match="at least one depth"):
        selection([], bound=0.0)


def test_samples_become_double_precision_and_columns_become_rows():
    x, y = samples_of(np.ones((3, 2), dtype=np.float32), torch.arange(3)[:, None])
    assert x.dtype == y.dtype == torch.float64 and y.tolist() == [0.0, 1.0, 2.0]
    assert new_inputs([[1, 2]], x).dtype == torch.float64


@pytest.mark.parametrize(
    ("x", "y", "word"),
    [
        (torch.ones(3), torch.ones(3), "one target a sample"),
        (torch.ones(3, 2), torch.ones(3, 2), "one target a sample"),
        (torch.ones(0, 2), torch.ones(0), "one target a sample"),
        (torch.ones(1, 2), torch.tensor([math.nan]), "finite inputs"),
    ],
)
def test_others_are_refused(x, y, word):
    with pytest.raises(ValueError, match=word):
        samples_of(x, y)


def test_new_inputs_have_the_features_of_those_seen():
    with pytest.raises(ValueError, match=r"\(samples, 2\), got \(1, 3\)"):
        new_inputs(torch.ones(1, 3), torch.ones(4, 2))
