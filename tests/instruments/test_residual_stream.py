"""Residual streams whose growth is known."""

import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.measure.dynamics import residual_sums


class Stack(nn.Module):
    """Branches behind a normalization, added to a stream; ``along`` is how much of the stream itself each adds to it."""

    def __init__(self, depth=6, width=256, along=0.0):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.branches = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))
        with torch.no_grad():
            for branch in self.branches:
                nn.init.normal_(branch.weight, std=0.5 / width**0.5)
                branch.weight += along * torch.eye(width)

    def forward(self, x):
        for norm, branch in zip(self.norms, self.branches, strict=True):
            x = x + branch(norm(x))
        return x


def inputs(count=16, width=256):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(0))


def test_branches_of_random_weights_add_a_quarter_each():
    torch.manual_seed(0)
    model, x = Stack(), inputs()
    *sums, whole = th.read("residual-stream", model, data=x)
    assert [r.where for r in sums] == [f"branches.{i}" for i in range(6)]
    assert all(r.status == "agrees" for r in (*sums, whole))
    h, sizes = x[::2], []  # the instrument looks at eight of them
    with torch.no_grad():
        for norm, branch in zip(model.norms, model.branches, strict=True):
            h = h + branch(norm(h))
            sizes.append(float(h.square().mean()))
    assert [r.measured for r in sums] == pytest.approx(sizes, rel=1e-5)
    assert whole.measured == pytest.approx(sizes[-1] / float(x[::2].square().mean()), rel=1e-5)
    assert whole.measured == pytest.approx(
        1 + 6 / 4, rel=0.1
    )  # a branch of a normalized stream has a mean square of 1/4


@pytest.mark.parametrize(("along", "word"), [(0.4, "lines up"), (-0.4, "takes away")])
def test_branches_that_line_up_with_the_stream_are_not_random(along, word):
    torch.manual_seed(0)
    *_, whole = th.read("residual-stream", Stack(along=along), data=inputs())
    assert whole.status == "not random"
    assert word in whole.meaning


def test_a_stream_that_is_normalized_between_sums_does_not_go_on():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    x = torch.randn(4, 5, 16)
    assert [one.goes_on for one in residual_sums(layer, (x,))] == [False, False]
    assert {r.quantity for r in th.read("residual-stream", layer, data=x)} == {"mean square of the residual stream"}


def test_a_sum_inside_an_activation_is_no_residual_sum():
    class Activation(nn.Module):
        def forward(self, x):
            return x + 0.1 * x**3

    plain = nn.Sequential(nn.Linear(8, 8), Activation(), nn.Linear(8, 8))
    assert residual_sums(plain, (torch.randn(4, 8),)) == []
    assert th.read("residual-stream", plain, data=torch.randn(4, 8)) == ()
