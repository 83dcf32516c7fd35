"""The effect of the last step: against numbers made by hand, for models of several precisions and sparse gradients."""

import pytest
import torch
from torch import nn

from theodolite.io.batches import Batch
from theodolite.measure.dynamics import update_effect


def squares(z, t):
    return (z - t).square().mean()


class TwoPrecisions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2).double()

    def forward(self, x):
        return self.last(self.first(x).double())


def by_hand(model, x, t, before):
    """Loss before and after and the predicted change, with weights really put in and taken out."""
    now = {name: p.detach().clone() for name, p in model.named_parameters()}
    after = float(squares(model(x), t).detach())
    model.load_state_dict(before, strict=False)
    loss = squares(model(x), t)
    slopes = torch.autograd.grad(loss, list(model.parameters()))
    moves = [now[name] - before[name] for name in now]
    predicted = sum(float((s.to_dense().double() * m.double()).sum()) for s, m in zip(slopes, moves, strict=True))
    model.load_state_dict(now, strict=False)
    return float(loss.detach()), after, predicted


def check(model, x):
    generator = torch.Generator().manual_seed(1)
    before = {
        name: p.detach() + 0.1 * torch.randn(p.shape, generator=generator).to(p.dtype)
        for name, p in model.named_parameters()
    }
    t = torch.zeros(4, 2)
    found = update_effect(model, squares, [Batch((x,), {}, t)], before=before)
    expected = by_hand(model, x, t, before)
    assert torch.allclose(
        torch.tensor([found.before[0], found.after[0], found.predicted[0]]).double(),
        torch.tensor(expected).double(),
        rtol=1e-5,
        atol=1e-7,
    )
    assert found.gradient.numel() == sum(p.numel() for p in model.parameters())


def test_layers_of_two_precisions():
    torch.manual_seed(0)
    check(TwoPrecisions(), torch.randn(4, 3))


def test_an_embedding_with_sparse_gradients():
    torch.manual_seed(0)
    check(nn.Sequential(nn.Embedding(5, 3, sparse=True), nn.Linear(3, 2)), torch.tensor([1, 2, 3, 1]))


class Tied(nn.Module):
    """A recurrent layer, which keeps its weights in a list of its own, and a table that is used twice."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 3)
        self.turn = nn.LSTM(3, 3, batch_first=True)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        return self.head(self.turn(self.words(x)[:, None])[0][:, 0])[:, :2]


def test_shared_and_recurrent_weights_are_as_before():
    torch.manual_seed(0)
    model = Tied()
    kept = list(model.parameters())
    check(model, torch.tensor([1, 2, 3, 1]))
    assert all(p is q for p, q in zip(model.parameters(), kept, strict=True))
    assert model.head.weight is model.words.weight


def test_weights_come_back_where_the_loss_fails():
    model = nn.Linear(3, 2)
    kept = list(model.parameters())
    batch = Batch((torch.ones(4, 3),), {}, torch.zeros(4, 7))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with pytest.raises(RuntimeError, match="size of tensor"):
        update_effect(model, squares, [batch], before=before)
    assert all(p is q for p, q in zip(model.parameters(), kept, strict=True))
