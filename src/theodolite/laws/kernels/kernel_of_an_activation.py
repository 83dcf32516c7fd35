r"""The tangent kernel of one hidden layer is two Gaussian integrals of its activation, for any activation there is."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory import Mlp
from theodolite.theory.kernels import mlp_kernels
from theodolite.theory.propagation import first_covariance, next_covariance

POINTS, REACH = 701, 7.0
C_W, C_B = 1.7, 0.2
INPUTS = ((1.0, -0.4, 0.8), (0.3, 1.1, 0.5))


def predict(activation: str, kernel: str) -> float:
    x = torch.tensor(INPUTS, dtype=torch.float64)
    if kernel == "NTK":
        return float(mlp_kernels(Mlp(1, activation, C_W, C_B), x).ntk[0, 1])
    start = first_covariance(Mlp(1, activation, C_W, C_B), *INPUTS)
    return next_covariance(activation, start, weight_variance=C_W, bias_variance=C_B)[2]


def measure(activation: str, kernel: str, *, correlated: float = 1.0) -> float:
    """Both integrals as sums over a grid of two Gaussians; slopes by automatic differentiation."""
    (a, b), k = (C_B + C_W * sum(u * u for u in x) / 3 for x in INPUTS), _dot()
    axis = torch.linspace(-REACH, REACH, POINTS, dtype=torch.float64)
    weight = torch.exp(-0.5 * axis**2)
    weight = weight / weight.sum()
    share = correlated * k / math.sqrt(a * b)
    first = math.sqrt(a) * axis[:, None].expand(POINTS, POINTS)
    second = math.sqrt(b) * (share * axis[:, None] + math.sqrt(1 - share * share) * axis)
    whole = weight[:, None] * weight
    (f, df), (g, dg) = _with_slopes(activation, first), _with_slopes(activation, second)
    nngp = float(C_B + C_W * (whole * f * g).sum())
    return nngp + C_W * float((whole * df * dg).sum()) * k if kernel == "NTK" else nngp


def _dot() -> float:
    return C_B + C_W * sum(u * v for u, v in zip(*INPUTS, strict=True)) / 3


def _with_slopes(activation: str, at: Tensor) -> tuple[Tensor, Tensor]:
    at = at.detach().clone().requires_grad_()
    values = FUNCTIONS[activation](at)
    (slopes,) = torch.autograd.grad(values.sum(), at)
    return values.detach(), slopes


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu_squared": lambda z: torch.relu(z).square(),
    "hardsigmoid": torch.nn.functional.hardsigmoid,
    "hardtanh": torch.nn.functional.hardtanh,
    "gelu": torch.nn.functional.gelu,
    "leaky_relu": torch.nn.functional.leaky_relu,
    "silu": torch.nn.functional.silu,
    "softplus": torch.nn.functional.softplus,
}

law = Law(
    claim="Closed forms, arcs and series for the kernels of activations all give the integrals that define them: of the "
    "activation and of its slope over two correlated Gaussians.",
    formula=r"\Theta=C_b+C_wE\,\sigma(u)\sigma(v)+C_wE\,\sigma'(u)\sigma'(v)\,\Big(C_b+C_w\tfrac{x\cdot x'}{n_0}\Big)",
    assumes={"signals as correlated as the inputs": {"correlated": 0.98}},
    source="jacot2018, Theorem 1; cho2009",
    predict=predict,
    measure=measure,
    cases=(
        *({"activation": name, "kernel": "NTK"} for name in FUNCTIONS),
        *({"activation": name, "kernel": "NNGP"} for name in ("relu_squared", "hardsigmoid", "gelu")),
    ),
    tolerance=3e-3,  # steps of 0.02 err by 2e-4 where slopes jump
    quantity="kernel between two inputs",
)
