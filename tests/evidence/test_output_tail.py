"""Everything behind the last layer, as a function of that layer's output."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms, subject_of
from theodolite.evidence.output_tail import floors, is_entrywise, output_tail, reach, reach_of_entries

X = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))


def tail_of(*behind, y):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), *behind)
    return output_tail(subject_of({"model": model, "data": (X, y), "loss": F.mse_loss}))


def test_a_bounded_output_cannot_reach_targets_beyond_it():
    tail = tail_of(nn.Sigmoid(), y=torch.full((64, 3), 3.0))
    assert tail.layers == ("2",) and not tail.plain and is_entrywise(tail)
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


class _Heads(nn.Module):
    """A box in a sigmoid and a kind beside it, or one that opens and closes the other."""

    def __init__(self, gate):
        super().__init__()
        self.body, self.box, self.kind, self.gate = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 2), gate

    def forward(self, x):
        h = self.body(x).relu()
        box, kind = self.box(h).sigmoid(), self.kind(h)
        return box * kind if self.gate else torch.cat([box, kind], 1)


def test_heads_are_side_by_side():
    torch.manual_seed(0)
    model, y = _Heads(False), torch.cat([torch.full((64, 2), 3.0), torch.zeros(64, 2)], 1)
    given = {"model": model, "data": (X, y), "loss": F.mse_loss}
    tail = output_tail(subject_of(given))
    assert tail.layers == ("box", "kind") and is_entrywise(tail) and not tail.plain
    own, free = floors(tail)
    assert own == pytest.approx(2.0, rel=1e-3) and free < 0.05
    found = alarms("outputs-squashed", given)
    assert found[0].where == "box" and found[0].severity == "critical"
    assert not alarms("outputs-squashed", {**given, "data": (X, torch.cat([torch.rand(64, 2), 3 * X[:, :2]], 1))})


def test_a_gate_is_no_head():
    tail = output_tail(subject_of({"model": _Heads(True), "data": (X, X[:, :2]), "loss": F.mse_loss}))
    assert tail.layers == ("box", "kind") and tail.given.shape != tail.outputs.shape and not is_entrywise(tail)
    assert reach(tail)[1] > 1e3
