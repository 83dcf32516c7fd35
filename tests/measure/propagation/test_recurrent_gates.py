import pytest
import torch
from torch import nn

from theodolite.measure.propagation.recurrent_gates import recurrent_saturation


def share_by_hand(cell, x):
    """Step by step with the cell's own formulas, PyTorch's order of gates: input, forget, cell, output."""
    w, u, b, c = (getattr(cell, f"{name}_l0").detach() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h = torch.zeros(len(x), cell.hidden_size)
    state = torch.zeros_like(h)
    flat = []
    for t in range(x.shape[1]):
        i, f, g, o = (x[:, t] @ w.T + b + h @ u.T + c).chunk(4, -1)
        flat += [4 * torch.sigmoid(gate) * (1 - torch.sigmoid(gate)) < 0.05 for gate in (i, f, o)]
        flat.append(1 - torch.tanh(g) ** 2 < 0.05)
        state = torch.sigmoid(f) * state + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(state)
    return float(torch.stack(flat).double().mean())


@pytest.mark.parametrize("factor", [1.0, 10.0, 40.0])
def test_the_share_is_that_of_the_cell_run_by_hand(factor):
    torch.manual_seed(0)
    cell = nn.LSTM(3, 6, batch_first=True)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.mul_(factor)
    x = torch.randn(10, 7, 3)
    found = recurrent_saturation(cell, x, cell(x)[0])
    assert found == pytest.approx(share_by_hand(cell, x), abs=2e-3)
    assert (found > 0.3) == (factor > 1)


def test_places_first_and_other_cells():
    torch.manual_seed(0)
    cell = nn.RNN(3, 6)
    x = torch.randn(7, 10, 3)
    h = cell(x)[0].detach()
    assert recurrent_saturation(cell, x, h) == pytest.approx(float((1 - h**2 < 0.05).double().mean()), abs=1e-6)
    deep = nn.GRU(3, 6, num_layers=2)
    assert recurrent_saturation(deep, x, deep(x)[0]) is None
