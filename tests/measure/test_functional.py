"""A module as a pure function of its parameters: what is the user's stays the user's."""

import pytest
import torch
from torch import nn

from theodolite.measure.functional import called_with, stateless


class Tied(nn.Module):
    """An embedding whose matrix is the readout's, too."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(x))


@pytest.mark.parametrize("uses", [1, 2, 4])
def test_a_module_that_is_used_several_times_keeps_its_own_parameters(uses: int) -> None:
    """torch.func.functional_call leaves the other values in such a module: in a watched training these were in no optimizer."""
    torch.manual_seed(0)
    block = nn.Linear(3, 3)
    model, x = nn.Sequential(*[block] * uses), torch.randn(4, 3)
    before = dict(block.named_parameters())
    others = {name: 2 * p.detach().double() for name, p in model.named_parameters()}
    found = called_with(model, others, (x.double(),))
    assert all(block.get_parameter(name) is p for name, p in before.items())
    wanted = x.double()
    for _ in range(uses):
        wanted = wanted @ others["0.weight"].T + others["0.bias"]
    torch.testing.assert_close(found, wanted)


def test_tensors_that_modules_share_are_shared_by_the_other_values() -> None:
    torch.manual_seed(0)
    model, x = Tied(), torch.tensor([0, 3])
    own = model.embed.weight
    other = torch.randn(5, 3)
    torch.testing.assert_close(called_with(model, {"embed.weight": other}, (x,)), other[x] @ other.T)
    assert model.embed.weight is own and model.head.weight is own
    net = stateless(model)
    torch.testing.assert_close(net({"embed.weight": other}, x), other[x] @ other.T)


def test_buffers_are_given_by_name_too() -> None:
    norm = nn.BatchNorm1d(2).eval()
    x = torch.tensor([[1.0, 2.0]])
    found = called_with(norm, {"running_mean": torch.tensor([1.0, 0.0])}, (x,))
    torch.testing.assert_close(found, torch.tensor([[0.0, 2.0]]), atol=1e-4, rtol=0)
    assert norm.running_mean is not None and norm.running_mean.tolist() == [0.0, 0.0]
