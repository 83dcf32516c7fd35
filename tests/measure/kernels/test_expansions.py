import pytest
import torch
from torch import nn

from theodolite.measure.kernels import (
    NtkProduct,
    empirical_ntk,
    kernel_matrix,
    kernel_spectrum,
    linearize,
    taylor_expand,
    top_ntk_eigenvalue,
)


@pytest.fixture(name="net")
def _net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.BatchNorm1d(6), nn.Linear(6, 2)).double()


def moved(net, step):
    torch.manual_seed(1)
    return {name: p.detach() + step * torch.randn_like(p) for name, p in net.named_parameters()}


def test_errors_of_the_expansion_fall_by_one_order_more_than_its_own(net):
    x = torch.randn(5, 3, dtype=torch.float64)
    net.eval()
    for order in (0, 1, 2, 3):
        expansion = taylor_expand(net, order)
        errors = []
        for step in (0.02, 0.01):
            parameters = moved(net, step)
            exact = torch.func.functional_call(net, parameters, (x,))
            errors.append((expansion(parameters, x) - exact).abs().max().item())
        assert errors[0] / errors[1] == pytest.approx(2 ** (order + 1), rel=0.15)


def test_a_linear_model_is_its_own_linearization(net):
    x = torch.randn(5, 3, dtype=torch.float64)
    model = nn.Linear(3, 2).double()
    parameters = moved(model, 1.0)
    expected = torch.func.functional_call(model, parameters, (x,))
    assert torch.allclose(linearize(model)(parameters, x), expected, atol=1e-13)
    before = model.weight.detach().clone()
    line = linearize(model)
    with torch.no_grad():
        model.weight += 1.0  # the point of expansion is that of the call, not of the evaluation
    assert torch.allclose(line({}, x), x @ before.T + model.bias)
    assert net.training


def test_products_equal_the_kernel_times_a_vector(net):
    x = torch.randn(5, 3, dtype=torch.float64)
    vector = torch.randn(10, dtype=torch.float64)
    expected = kernel_matrix(empirical_ntk(net, x, outputs="full")) @ vector
    for block in (2, 100):
        assert torch.allclose(NtkProduct(net, x, block=block)(vector), expected, atol=1e-11)
    assert net.training


def test_the_largest_eigenvalue_by_products_equals_the_exact_one(net):
    x = torch.randn(30, 3, dtype=torch.float64)
    exact = kernel_spectrum(empirical_ntk(net, x, outputs="full")).largest
    found = top_ntk_eigenvalue(net, x, dense_below=0)
    assert found.value == pytest.approx(exact, rel=1e-6)
    assert abs(found.value - exact) <= found.stderr + 1e-9 * exact
    assert top_ntk_eigenvalue(net, x).value == pytest.approx(exact, rel=1e-10)


def test_wrong_orders_and_names_are_refused(net):
    with pytest.raises(ValueError, match="order"):
        taylor_expand(net, -1)
    with pytest.raises(ValueError, match="parameters among"):
        linearize(net)({"nothing": torch.zeros(1)}, torch.randn(2, 3))
