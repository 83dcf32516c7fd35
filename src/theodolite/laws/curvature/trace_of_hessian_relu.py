r"""In a ReLU network Hessian and Gauss-Newton matrix have the same trace: no weight bends the output by itself."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.curvature import gauss_newton, hessian
from theodolite.theory import Mlp

NETS = 2


def measure(hidden_layers: int, *, generator: torch.Generator, activation: str = "relu", tied: bool = False) -> float:
    """The root mean square, over networks, of the difference of the traces over their sum."""
    apart = []
    for _ in range(NETS):
        spec = Mlp(widths=(5,) * hidden_layers, activation=activation, weight_variance=2.0, bias_variance=0.1)
        model = network(spec, 5, 3, generator=generator, dtype=torch.float64)
        if tied:
            first, second = model[0], model[2]
            assert isinstance(first, nn.Linear) and isinstance(second, nn.Linear)
            second.weight = first.weight
        x = torch.randn(6, 5, generator=generator, dtype=torch.float64)
        y = torch.randint(0, 3, (6,), generator=generator)
        H, G = (of(model, cross_entropy, (x, y)).dense() for of in (hessian, gauss_newton))
        apart.append(float((H.trace() - G.trace()) / (H.trace().abs() + G.trace())))
    return float(torch.tensor(apart, dtype=torch.float64).square().mean().sqrt())


law = Law(
    claim="The output of a piecewise linear network is linear in each single weight, so the residuals' part of the Hessian "
    "has a zero diagonal and the trace of the Hessian is that of the Gauss-Newton matrix, at any time of training.",
    formula=r"\partial^2_{\mu\mu}f_c=0\;\Rightarrow\;\mathrm{tr}\,H=\mathrm{tr}\,G",
    assumes={"a piecewise linear activation": {"activation": "tanh"}, "each weight is used once": {"tied": True}},
    source="sagun2017",
    predict=lambda **case: Band.around(0.0, abs=1e-10),  # rounding of traces of about a hundred terms
    measure=measure,
    cases=({"hidden_layers": 2}, {"hidden_layers": 3}, {"hidden_layers": 4}),
    repeats=12,
    quantity="difference of the traces over their sum",
)
