"""The sawtooth is the tent map folded, in both forms, with the stated number of units."""

import pytest
import torch
from torch import nn

from theodolite.construct.regions import sawtooth


@pytest.mark.parametrize("folds", [1, 2, 5])
def test_both_forms_are_the_folded_tent(folds):
    x = torch.linspace(0, 1, 257, dtype=torch.float64)[:, None]
    tent = x
    for _ in range(folds):
        tent = 1 - (2 * tent - 1).abs()
    for compact in (False, True):
        torch.testing.assert_close(sawtooth(folds, compact=compact)(x), tent)


@pytest.mark.parametrize("folds", [1, 2, 5])
def test_sizes(folds):
    for compact, units, layers in ((False, 3 * folds - 1, 2 * folds - 1), (True, 2 * folds, folds)):
        hidden = [m for m in sawtooth(folds, compact=compact) if isinstance(m, nn.Linear)][:-1]
        assert (sum(layer.out_features for layer in hidden), len(hidden)) == (units, layers)


def test_no_fold_is_refused():
    with pytest.raises(ValueError, match="expected at least one fold"):
        sawtooth(0)
