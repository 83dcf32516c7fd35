r"""The Hessian is the Gauss-Newton matrix plus the curvature of the network weighted by the residuals, exactly."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.curvature import gauss_newton, hessian
from theodolite.theory import Mlp


def measure(activation: str, loss: str, *, generator: torch.Generator, residuals: bool = True) -> float:
    spec = Mlp(widths=(6,), activation=activation, weight_variance=1.5, bias_variance=0.1)
    model = network(spec, 4, 3, generator=generator, dtype=torch.float64)
    x = torch.randn(8, 4, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (8,), generator=generator) if loss == "cross-entropy" else x[:, :3]
    function = cross_entropy if loss == "cross-entropy" else mse_loss
    H, G = hessian(model, function, (x, y)).dense(), gauss_newton(model, function, (x, y)).dense()
    outputs = model(x).detach().requires_grad_()
    slopes = torch.autograd.grad(function(outputs, y), outputs)[0]  # d loss / d outputs, held fixed
    own = dict(model.named_parameters())
    sizes = [p.numel() for p in own.values()]

    def weighted(flat: Tensor) -> Tensor:
        parts = {n: v.reshape(p.shape) for (n, p), v in zip(own.items(), torch.split(flat, sizes), strict=True)}
        return (slopes * torch.func.functional_call(model, parts, (x,))).sum()

    start = torch.cat([p.detach().flatten() for p in own.values()])
    E = torch.autograd.functional.hessian(weighted, start) if residuals else 0 * H  # type: ignore[no-untyped-call]
    return float((H - G - E).norm() / (H.norm() + (G + E).norm()))


law = Law(
    claim="The Hessian of a loss is the Hessian in the outputs carried to the parameters, plus the second derivatives of "
    "the outputs weighted by the slopes of the loss.",
    formula=r"\nabla^2_\theta\ell(f(\theta))=J^T(\nabla^2_f\ell)J+\sum_c\frac{\partial\ell}{\partial f_c}\nabla^2_\theta f_c",
    assumes={"the residuals' term counts": {"residuals": False}},
    source="schraudolph2002",
    # rounding: sums of some thousand terms of size 1e-16, conditioned by at most 1e3
    predict=lambda **case: Band.around(0.0, abs=1e-10),
    measure=measure,
    cases=(
        {"activation": "tanh", "loss": "cross-entropy"},
        {"activation": "gelu", "loss": "mse"},
        {"activation": "sin", "loss": "cross-entropy"},
    ),
    repeats=6,
    quantity="distance from the sum of the two terms over the sum of the norms",
)
