"""Measured numbers that were once wrong, each with the input that showed it."""

import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.measure.dynamics import subspace_share
from theodolite.measure.kernels import empirical_ntk


def test_subspace_share_of_dependent_vectors_is_that_of_their_span():
    along, across = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])
    assert subspace_share(across, torch.stack([along, 2 * along, along])) == 0.0
    assert subspace_share(along, torch.stack([along, 1e-20 * along, 0 * along])) == pytest.approx(1.0)
    assert subspace_share(across, torch.zeros(2, 3)) == 0.0
    with pytest.raises(ValueError, match="expected a gradient that is not 0"):
        subspace_share(torch.zeros(3), torch.stack([along]))


def test_empirical_ntk_refuses_empty_inputs_and_takes_arrays():
    model = nn.Linear(2, 1)
    with pytest.raises(ValueError, match="^expected"):
        empirical_ntk(model, torch.zeros(0, 2))
    kernel = empirical_ntk(model, torch.eye(2, dtype=torch.float32).numpy())
    assert torch.allclose(kernel, empirical_ntk(model, torch.eye(2)))
    with pytest.raises(RuntimeError, match="same dtype"):  # torch says it well
        empirical_ntk(model, torch.eye(2).long())


def _untrained(kind, layers=1, size=512):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(size, size, bias=False) for _ in range(layers)])
    for module in model:
        nn.init.normal_(module.weight, std=size**-0.5)
    return th.Subject(model.to(kind))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32])
def test_the_numerical_rank_of_noise_is_as_expected_in_any_storage(kind):
    seen = [r for r in th.survey(_untrained(kind), instruments=["rank"]).readings if r.quantity == "numerical rank"]
    assert [r.status for r in seen] == ["agrees"]


def test_untrained_weights_are_not_said_to_be_written_by_training():
    readings = th.survey(_untrained(torch.float32, layers=24, size=64), instruments=["weight-spectrum"]).readings
    surprise = [r for r in readings if r.quantity == "p-value against noise"]
    assert len(surprise) == 24
    assert all(r.status != "not random" for r in surprise)
    assert not any("training has created" in r.meaning for r in readings)
