"""The spectrum of a quadratic is that of its matrix."""

import pytest
import torch
from torch import nn

import theodolite as th


def test_of_least_squares_trace_and_ends_are_those_of_the_inputs():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 6, generator=generator, dtype=torch.float64) * torch.tensor([5.0, 1, 1, 1, 0.5, 0.5]).double()
    model = nn.Linear(6, 1, bias=False).double()
    data = (x, torch.randn(64, 1, generator=generator, dtype=torch.float64))
    subject = th.Subject(model, data=data, loss=nn.functional.mse_loss)
    found = {reading.quantity: reading for reading in th.read("hessian-spectrum", subject)}
    values = torch.linalg.eigvalsh(2 * x.T @ x / 64)
    assert found["lowest Hessian eigenvalue"].measured == pytest.approx(float(values[0]), rel=1e-3)
    assert found["share of eigenvalues below -1e-3 of the largest"].measured == 0.0
    trace = found["trace of the Hessian"]
    assert abs(trace.measured - float(values.sum())) <= 4 * trace.stderr + 1e-9 * float(values.sum())
