r"""The tangent kernel of two layers is a mean over hidden units of $\sigma\sigma'+x\cdot x'a_k^2\dot\sigma\dot\sigma'$."""

import torch
from torch import Tensor, nn

from theodolite.core.law import Law
from theodolite.measure.kernels import empirical_ntk

WIDTH, INPUTS = 12, 3


def drawn(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = (WIDTH, INPUTS), (WIDTH,), (2, INPUTS)
    w, a, x = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return w, a, x


def predict(seed: int) -> float:
    w, a, x = drawn(seed)
    return entry(w, a.square(), x)


def with_input_weights(seed: int) -> float:
    w, _, x = drawn(seed)
    return entry(w, w[:, 0].square(), x)


def entry(w: Tensor, squares: Tensor, x: Tensor) -> float:
    """By the formula, with the squares that weigh the units of the first layer's kernel."""
    z = x @ w.T
    slopes = 1 / torch.cosh(z) ** 2
    output = (torch.tanh(z[0]) * torch.tanh(z[1])).mean()
    return float(output + x[0] @ x[1] * (squares * slopes[0] * slopes[1]).mean())


def measure(seed: int, *, frozen: bool = False, scale: float = WIDTH**-0.5) -> float:
    w, a, x = drawn(seed)
    net = nn.Sequential(nn.Linear(INPUTS, WIDTH, bias=False), nn.Tanh(), nn.Linear(WIDTH, 1, bias=False)).double()
    with torch.no_grad():
        first, last = net.parameters()
        first.copy_(w)
        last.copy_(a * scale)
    last.requires_grad_(not frozen)
    # The output weight is a_k times the scale: the derivative by a_k is the scale times that by the weight.
    return float(empirical_ntk(net, x, rates={"2.weight": scale**2})[0, 1])


law = Law(
    claim="The tangent kernel of a two-layer network is a sum of two Gram matrices over hidden units, one for each layer.",
    formula=r"\Theta_{\alpha\beta}=\frac{1}{n}\sum_k\sigma_{k\alpha}\sigma_{k\beta}"
    r"+x_\alpha\cdot x_\beta\,\frac{1}{n}\sum_ka_k^2\,\dot\sigma_{k\alpha}\dot\sigma_{k\beta}",
    assumes={
        "both layers train": {"frozen": True},
        "an output of scale one over the root of the width": {"scale": (1 - 1.5e-09) * WIDTH**-0.5},
    },
    source="jacot2018; du2019",
    predict=predict,
    measure=measure,
    cases=({"seed": 1}, {"seed": 2}, {"seed": 3}),
    tolerance=1e-9,  # an identity: rounding only
    quantity="entry of the tangent kernel",
    erratum="Lecture notes print the square of an input weight where that of the output weight a_k belongs.",
    refuted=with_input_weights,
)
