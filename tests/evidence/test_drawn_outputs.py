"""Outputs drawn in the place of a model's own: their range, their nesting, and what a loss of several samples does with them."""

import torch
from torch.nn.functional import cross_entropy, mse_loss, normalize

from theodolite.evidence.drawn_outputs import drawn_outputs, is_coupled, members_of, rebuilt

X = torch.randn(16, 4, generator=torch.Generator().manual_seed(1))


def test_outputs_are_drawn_in_the_range_of_the_models_own():
    (plain,), (shares,), (logs,) = (drawn_outputs(own, None)[0] for own in (X, X.softmax(-1), X.log_softmax(-1)))
    assert bool((plain < 0).any())
    assert torch.allclose(shares.sum(-1), torch.ones(16)) and torch.allclose(logs.exp().sum(-1), torch.ones(16))
    assert float(drawn_outputs(X, torch.full((16,), 1e6))[0][0].abs().max()) > 1e5


def test_an_answer_is_rebuilt_as_it_was_nested():
    answer = {"logits": X, "parts": (X + 1, torch.arange(3)), "name": "it"}
    again = rebuilt(answer, [2 * t for t in members_of(answer)])
    assert torch.equal(again["logits"], 2 * X) and torch.equal(again["parts"][0], 2 * X + 2)
    assert torch.equal(again["parts"][1], torch.arange(3)) and again["name"] == "it"


def test_a_contrastive_loss_couples_samples_and_a_mean_does_not():
    def contrastive(answer, target):
        rows = normalize(answer, dim=-1)
        return cross_entropy(rows @ rows.T, torch.arange(len(rows)))

    assert is_coupled(contrastive, X, torch.arange(16))
    assert not is_coupled(mse_loss, X, X + 1)
    assert not is_coupled(lambda answer, target: mse_loss(answer, target).sqrt(), X, X + 1)
    assert not is_coupled(cross_entropy, X, torch.zeros(16, dtype=torch.long))
