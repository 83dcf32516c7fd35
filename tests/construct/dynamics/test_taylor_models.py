"""Taylor models of any network against dense second derivatives, descent against the recursion, and the model left alone."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, hessian, jacrev

import theodolite as th
from theodolite.construct.dynamics import OneHidden, frozen_gate_start
from theodolite.theory.dynamics import catapult_with_target


def seeded(build, dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().to(dtype)


def small(activation=nn.GELU):
    return nn.Sequential(nn.Linear(2, 3), activation(), nn.Linear(3, 2))


def moved(taylor, size=0.1, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return {k: p + size * torch.randn(p.shape, generator=generator, dtype=p.dtype) for k, p in taylor.start.items()}


def dense_terms(net, x, change):
    """f0, J d and d F d by forming J and F."""
    names = [name for name, _ in net.named_parameters()]
    shapes = [p.shape for p in net.parameters()]

    def f(vector):
        parts = torch.split(vector, [shape.numel() for shape in shapes])
        return functional_call(
            net, {n: q.reshape(s) for n, q, s in zip(names, parts, shapes, strict=True)}, (x,)
        ).flatten()

    start = torch.cat([p.detach().flatten() for p in net.parameters()])
    d = torch.cat([change[name].flatten() for name in names])
    return f(start), jacrev(f)(start), hessian(f)(start), d


@pytest.mark.parametrize("activation", [nn.GELU, nn.SiLU])  # SiLU has no forward derivative twice: the reverse way
def test_outputs_gradient_and_kernel_against_dense_derivatives(activation):
    net, x = (
        seeded(lambda: small(activation)),
        torch.randn(4, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64),
    )
    taylor = th.quadratic(net, x)
    point = moved(taylor)
    f0, J, F, d = dense_terms(net, x, {k: point[k] - taylor.start[k] for k in point})
    torch.testing.assert_close(taylor(point).flatten(), f0 + J @ d + 0.5 * torch.einsum("aij,i,j->a", F, d, d))
    rows = J + F @ d
    c = torch.arange(8.0, dtype=torch.float64).reshape(4, 2)
    found = torch.cat([g.flatten() for g in taylor.pulled_back(point, c).values()])
    torch.testing.assert_close(found, c.flatten() @ rows)
    torch.testing.assert_close(taylor.tangent_kernel(point), rows @ rows.T)


def test_one_datum_follows_descent_by_the_few_numbers_of_lanczos():
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)))
    x, y = torch.ones(1, 3, dtype=torch.float64), torch.tensor([[0.5]], dtype=torch.float64)
    taylor = th.quadratic(net, x)
    few = taylor.one_datum(steps=12)
    assert len(few.eigenvalues) <= 12
    run = taylor.descended(y, lr=2.3 / few.curvature, steps=11)
    path = few.path(target=0.5, lr=2.3 / few.curvature, steps=11)
    np.testing.assert_allclose(path.outputs, run.outputs.flatten().numpy(), rtol=1e-8)
    np.testing.assert_allclose(path.curvatures, run.curvatures, rtol=1e-8)


def test_frozen_gates_have_two_eigenvalues_and_obey_the_recursion():
    net = OneHidden(0, width=64, inputs=3)
    z, lam, c = frozen_gate_start(net)
    few = th.quadratic(net, net.datum).one_datum()
    np.testing.assert_allclose(few.eigenvalues, [-(c**0.5), c**0.5], rtol=1e-10)
    for product in (1.0, 3.0, 3.9):
        ours = few.path(target=0.4, lr=product / lam, steps=40)
        other = catapult_with_target(z, lam, target=0.4, coupling=c, lr=product / lam, steps=40)
        np.testing.assert_allclose(ours.outputs, other.outputs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("product", "kind"), [(1.0, "lazy"), (3.0, "catapult"), (5.0, "divergent")])
def test_outcomes_of_descent(product, kind):
    net = OneHidden(0, width=64, inputs=3)
    lr = product / frozen_gate_start(net)[1]
    run = th.quadratic(net, net.datum).descended(torch.zeros(1), lr=lr, steps=50, watch=False)
    assert run.outcome.name == kind
    assert len(run.curvatures) == 2


def test_a_dead_network_is_told_from_one_that_fits():
    net = OneHidden(0, width=20, inputs=3)
    lr = 30 / frozen_gate_start(net)[1]
    run = th.quadratic(net, net.datum, order=0).descended(torch.zeros(1), lr=lr, steps=60, watch=False)
    assert run.outcome.name == "dead"
    assert run.losses[-1] == 0.0


def test_flow_lowers_the_loss_as_small_steps_do():
    net, x = seeded(small), torch.randn(3, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    y = torch.zeros(3, 2, dtype=torch.float64)
    taylor = th.quadratic(net, x)
    end = taylor.flowed(y, time=0.2)
    steps = taylor.descended(y, lr=0.001, steps=200, watch=False)
    for name in end:
        torch.testing.assert_close(end[name], steps.end[name], atol=1e-3, rtol=1e-2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True)

    def forward(self, x):
        return self.layer(x).mean(1)


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (
            lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.SiLU(), nn.Flatten(), nn.Linear(8, 1)),
            (2, 1, 4, 4),
        ),
        (lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Dropout(0.5), nn.Tanh(), nn.Linear(4, 2)), (2, 3)),
        (Attention, (2, 3, 4)),
    ],
)
def test_any_module_and_it_is_left_alone(build, shape):
    net = seeded(build, torch.float32).train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    state = torch.get_rng_state()
    x = torch.ones(shape) * torch.linspace(-1, 1, shape[-1])
    taylor = th.quadratic(net, x)
    run = taylor.descended(torch.zeros(taylor(taylor.start).shape), lr=1e-3, steps=3)
    assert run.losses[-1] < run.losses[0]
    with torch.no_grad():
        for p in net.parameters():
            p.add_(1.0)  # the expansion is of the weights as they were
    again = taylor(taylor.start)
    torch.testing.assert_close(again, run.outputs[0])
    with torch.no_grad():
        for p in net.parameters():
            p.sub_(1.0)
    assert net.training
    assert all(torch.allclose(v, before[k]) for k, v in net.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    assert all(p.grad is None for p in net.parameters())


def test_half_precision_is_promoted():
    net = seeded(small, torch.bfloat16)
    taylor = th.quadratic(net, torch.ones(2, 2))
    assert taylor(taylor.start).dtype == torch.float32


def test_bad_input_is_answered_in_one_line():
    net = seeded(small)
    with pytest.raises(ValueError, match="expected an order"):
        th.quadratic(net, torch.ones(2, 2), order=-1)
    with pytest.raises(ValueError, match="expected targets of shape"):
        th.quadratic(net, torch.ones(2, 2)).descended(torch.zeros(3), lr=0.1, steps=1)
    with pytest.raises(ValueError, match="expected one output"):
        th.quadratic(net, torch.ones(2, 2)).one_datum()
    with pytest.raises(ValueError, match="expected finite outputs"):
        th.quadratic(net, torch.full((2, 2), float("nan")))
