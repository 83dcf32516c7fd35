"""Everything behind the last layer, as a function of that layer's output."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import subject_of
from theodolite.evidence.output_tail import floors, is_entrywise, output_tail, reach, reach_of_entries

X = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))


def tail_of(*behind, y):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), *behind)
    return output_tail(subject_of({"model": model, "data": (X, y), "loss": F.mse_loss}))


def test_a_bounded_output_cannot_reach_targets_beyond_it():
    tail = tail_of(nn.Sigmoid(), y=torch.full((64, 3), 3.0))
    assert tail.layer == "2" and not tail.plain and is_entrywise(tail)
    assert reach(tail) == pytest.approx((0.0, 1.0), abs=1e-6)
    own, free = floors(tail)
    assert own == pytest.approx(4.0, rel=1e-3) and free < 0.05


def test_plain_outputs_and_those_that_share_a_sum():
    assert tail_of(y=torch.zeros(64, 3)).plain
    assert not is_entrywise(tail_of(nn.Softmax(1), y=torch.zeros(64, 3)))


def test_each_entry_of_one_sample_reaches_both_ends():
    tail = tail_of(nn.Sigmoid(), y=torch.rand(64, 3).round())
    one = replace(tail, given=tail.given[:1])
    low, high = reach_of_entries(one)
    assert low.abs().max() < 1e-6 and (high - 1).abs().max() < 1e-6
