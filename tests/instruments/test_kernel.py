import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
from theodolite.construct.propagation import network
from theodolite.measure.kernels import empirical_ntk, kernel_spectrum, output_curvatures, sketched_ntk
from theodolite.theory import Mlp


def subject(model, *, targets="classes", **facts):
    torch.manual_seed(0)
    x = torch.randn(60, 5)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long() if targets == "classes" else x[:, :1] * x[:, 1:2]
    loss = cross_entropy if targets == "classes" else mse_loss
    return th.Subject(model, data=(x, y), loss=loss, **facts)


def by_name(readings):
    return {(r.quantity, r.where): r for r in readings}


def mlp(outputs=3):
    return network(Mlp(1, "relu", 2.0), 5, outputs, width=32, generator=torch.Generator().manual_seed(0))


def test_the_largest_eigenvalue_is_that_of_the_gauss_newton_matrix():
    model = mlp(1)
    found = by_name(th.read("kernel", subject(model, targets="numbers", lr=0.1)))
    reading = found["largest eigenvalue of the kernel in the loss", "60 samples"]
    x = subject(model, targets="numbers").data.source[0]
    rows = []
    for sample in x:
        gradients = torch.autograd.grad(model(sample[None]).sum(), list(model.parameters()))
        rows.append(torch.cat([g.flatten() for g in gradients]))
    J = torch.stack(rows).double()
    exact = torch.linalg.eigvalsh(2 / len(x) * J @ J.T)[-1].item()  # the mean squared error has curvature 2/n
    assert reading.measured == pytest.approx(exact, rel=1e-5)
    assert reading.expected.high == pytest.approx(20.0)


def test_a_model_at_its_origin_has_no_drift_and_a_moved_one_has():
    model = mlp()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    key = "drift of the tangent kernel since the start", "relative, Frobenius"
    assert by_name(th.read("kernel", subject(model, origin=start)))[key].measured == pytest.approx(0.0, abs=1e-6)
    with torch.no_grad():
        model[0].weight.mul_(2.0)
    moved = by_name(th.read("kernel", subject(model, origin=start)))[key]
    assert moved.measured > 1
    assert "grown" in moved.meaning


def test_the_step_limit_is_raised_by_momentum_and_missing_without_a_step():
    key = "largest eigenvalue of the kernel in the loss", "60 samples"
    model = mlp()
    plain, heavy = (by_name(th.read("kernel", subject(model, lr=0.1, momentum=m)))[key] for m in (0.0, 0.5))
    assert heavy.expected.high == pytest.approx(1.5 * plain.expected.high)
    assert by_name(th.read("kernel", subject(model)))[key].expected is None


def test_curvatures_of_the_cross_entropy_are_known():
    z, y = torch.randn(4, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 0])
    p = z.softmax(1)
    expected = (torch.diag_embed(p) - p[:, :, None] * p[:, None]) / 4
    assert torch.allclose(output_curvatures(cross_entropy, z, y), expected)


def test_models_it_cannot_read_give_nothing():
    assert th.read("kernel", th.Subject(nn.Linear(5, 500), data=torch.randn(8, 5))) == ()
    frozen = mlp()
    frozen.requires_grad_(False)
    assert th.read("kernel", subject(frozen)) == ()


@pytest.mark.parametrize("model", [nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3))])
def test_convolutions_and_data_without_targets(model):
    readings = th.read("kernel", th.Subject(model, data=torch.randn(20, 1, 3, 3)))
    assert {r.quantity for r in readings} == {
        "condition number of the tangent kernel",
        "effective rank of the tangent kernel",
    }


def test_the_spectrum_of_a_singular_kernel_is_finite_in_the_reading():
    x = torch.ones(20, 5)
    readings = by_name(th.read("kernel", th.Subject(mlp(), data=x)))
    reading = readings["condition number of the tangent kernel", "20 samples"]
    assert reading.measured > 1e6
    assert "Singular" in reading.meaning
    assert kernel_spectrum(torch.ones(3, 3)).condition == float("inf")


def test_of_more_data_than_the_kernel_takes_the_largest_eigenvalue_is_that_of_all():
    torch.manual_seed(1)
    x, y = torch.randn(600, 5), torch.randint(0, 3, (600,))
    model = mlp()
    found = by_name(th.read("kernel", th.Subject(model, data=(x, y), loss=cross_entropy)))
    reading = found["largest eigenvalue of the kernel in the loss", "600 samples"]
    jacobian = torch.cat([part.flatten(2) for part in jacobians(model, x).values()], 2).double()
    root = torch.linalg.cholesky(600 * output_curvatures(cross_entropy, model(x).double(), y) + 1e-12 * torch.eye(3))
    rows = (root.mT @ jacobian).flatten(0, 1)
    exact = float(torch.linalg.eigvalsh(rows.T @ rows / 600)[-1])
    assert abs(reading.measured - exact) <= 3 * reading.stderr + 1e-5 * exact
    assert reading.stderr < 1e-3 * exact


def jacobians(model, x):
    own = {name: value.detach() for name, value in model.named_parameters()}

    def one(parameters, sample):
        return torch.func.functional_call(model, parameters, (sample[None],))[0]

    return torch.func.vmap(torch.func.jacrev(one), in_dims=(None, 0))(own, x)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def plain_subject(samples=96, batch=32):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3))
    x = torch.randn(samples, 6, generator=seeded())
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    return th.Subject(model, data=list(zip(x.split(batch), y.split(batch), strict=True)), loss=cross_entropy, lr=0.1)


def test_a_sketched_kernel_tends_to_the_mean_kernel():
    own = plain_subject()
    x = own.data.source[0][0][:8]
    exact, sketch = empirical_ntk(own.model, x).double(), sketched_ntk(own.model, x, draws=400)
    assert (sketch - exact).norm() < 0.15 * exact.norm()
