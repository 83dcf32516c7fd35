import torch
from torch import nn

from theodolite.measure.experiments import Ensemble, batch_kernels, descended, linearly_descended, tangent_kernels
from theodolite.measure.kernels import empirical_ntk


def test_kernels_of_an_ensemble_have_the_moments_of_kernels_of_modules():
    ensemble = Ensemble(activation=torch.tanh, widths=(8, 6), weight_variance=1.5, bias_variance=0.1)
    x = torch.tensor([[1.0, 0.5, -0.5], [0.2, -1.0, 0.7]])
    generator = torch.Generator().manual_seed(0)
    found = tangent_kernels(ensemble, x, nets=4000, weight_rate=2.0, bias_rate=0.5, generator=generator).sum((1, 2))
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1))
    rates = {name: 2.0 / p.shape[1] if p.ndim > 1 else 0.5 for name, p in net.named_parameters()}
    kernels = []
    for _ in range(150):
        with torch.no_grad():
            for p in net.parameters():
                p.normal_(0.0, (1.5 / p.shape[1]) ** 0.5 if p.ndim > 1 else 0.1**0.5, generator=generator)
        kernels.append(empirical_ntk(net, x, rates=rates))
    other = torch.stack(kernels)
    error = (found.var(0) / len(found) + other.var(0) / len(other)).sqrt()
    assert ((found.mean(0) - other.mean(0)).abs() < 4 * error).all()


def test_parts_add_up_for_known_weights():
    ensemble = Ensemble(activation=torch.relu, widths=(5,), weight_variance=2.0)
    generator = torch.Generator().manual_seed(3)
    parts = tangent_kernels(ensemble, torch.eye(2), nets=1, weight_rate=1.0, bias_rate=1.0, generator=generator)
    generator = torch.Generator().manual_seed(3)
    first = torch.randn(2, 5, generator=generator)  # weights are drawn before biases
    torch.randn(5, generator=generator)
    last = torch.randn(5, 1, generator=generator) * (2 / 5) ** 0.5
    gates = (first > 0).float()  # inputs are the unit vectors
    back = gates * last.T
    assert torch.allclose(parts[0, 0, 1], back @ back.T, atol=1e-6)
    assert torch.allclose(parts[0, 1, 1], torch.ones(2, 2))


def test_descent_of_a_linear_model_is_that_of_its_linearization():
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(4, 3, generator=generator), torch.randn(4, generator=generator)
    start = [torch.randn(6, 3, 1, generator=generator)]

    def forward(parameters):
        return (x @ parameters[0]).squeeze(-1)

    end = forward(descended(forward, start, y, rates=(0.3,), steps=20))
    line = linearly_descended(forward, start, y, rates=(0.3,), steps=20)
    assert torch.allclose(end, line, atol=1e-5)
    kernel, z = batch_kernels(forward, start, rates=(2.0,))
    assert torch.allclose(kernel[0], 2.0 * x @ x.T, atol=1e-5)
    assert torch.allclose(z, forward(start))
