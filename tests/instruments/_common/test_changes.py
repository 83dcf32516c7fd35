"""What a change of weights is, where it was planted."""

import pytest
import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.instruments._common.changes import weight_changes


def changed(difference):
    torch.manual_seed(0)
    model = nn.Linear(40, 30, bias=False).double()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        model.weight += difference.to(model.weight)
    (found,) = weight_changes(Subject(model, origin=before))
    return found, before["weight"]


def test_a_planted_change_has_its_size_and_its_rank():
    generator = torch.Generator().manual_seed(1)
    low = torch.randn(30, 3, generator=generator, dtype=torch.float64)
    low = 0.1 * low @ torch.randn(3, 40, generator=generator, dtype=torch.float64)
    found, start = changed(low)
    assert found.rank == found.spikes == 3 and found.smaller == 30
    assert found.relative == pytest.approx(float(low.norm() / start.norm()), rel=1e-9)
    values = torch.linalg.svdvals(low).square()
    assert found.stable_rank == pytest.approx(float(values.sum() / values[0]), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [0.01, 1.0])
def test_an_adapter_merged_in_few_digits_shows_its_rank(dtype, size):
    torch.manual_seed(3)
    model = nn.Linear(100, 150, bias=False).to(dtype)
    before = {"weight": model.weight.detach().clone()}
    with torch.no_grad():
        model.weight += (size / 20 * torch.randn(150, 4)).to(dtype) @ torch.randn(4, 100).to(dtype)
    (found,) = weight_changes(Subject(model, origin=before))
    assert found.rank == found.spikes == 4


def test_noise_has_full_rank_and_no_spikes():
    noise = torch.randn(30, 40, generator=torch.Generator().manual_seed(2))
    found, _ = changed(0.01 * noise)
    assert found.rank == 30 and found.spikes == 0


def test_nothing_changed_is_nothing():
    found, _ = changed(torch.zeros(30, 40))
    assert (found.relative, found.rank, found.stable_rank, found.spikes) == (0.0, 0, 0.0, 0)
