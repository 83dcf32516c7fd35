r"""At zero residual the Hessian of the squared error has the eigenvalues of the tangent kernel over the samples."""

import torch
from torch import Tensor

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.curvature import hessian
from theodolite.measure.kernels import empirical_ntk
from theodolite.theory import Mlp

SAMPLES, OUTPUTS = 5, 2


def measure(activation: str, *, generator: torch.Generator, residual: float = 0.0) -> float:
    spec = Mlp(widths=(8, 6), activation=activation, weight_variance=1.5, bias_variance=0.1)
    model = network(spec, 4, OUTPUTS, generator=generator, dtype=torch.float64)
    x = torch.randn(SAMPLES, 4, generator=generator, dtype=torch.float64)
    y = model(x).detach() + residual * torch.randn(SAMPLES, OUTPUTS, generator=generator, dtype=torch.float64)
    values = torch.linalg.eigvalsh(hessian(model, _half_squares, (x, y)).dense()).flip(0)[: SAMPLES * OUTPUTS]
    kernel = empirical_ntk(model, x, outputs="full").transpose(1, 2).reshape(SAMPLES * OUTPUTS, -1)
    wanted = torch.linalg.eigvalsh(kernel).flip(0) / SAMPLES
    return float((values - wanted).norm() / (values.norm() + wanted.norm()))


def _half_squares(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().sum() / (2 * len(output))


law = Law(
    claim="The Gauss-Newton matrix and the tangent kernel are the two products of one Jacobian: they share their nonzero "
    "eigenvalues, and where the residuals vanish these are those of the Hessian.",
    formula=r"L=\frac{1}{2m}\sum|z-y|^2:\quad H|_{z=y}=\frac{1}{m}J^TJ,\qquad\Theta=JJ^T",
    assumes={"zero residual": {"residual": 0.03}},
    source="jacot2018; martens2020",
    # rounding of eigenvalues, about P x 1e-16 of the largest
    predict=lambda **case: Band.around(0.0, abs=1e-12),
    measure=measure,
    cases=({"activation": "tanh"}, {"activation": "gelu"}, {"activation": "relu"}),
    repeats=8,
    quantity="distance of the two spectra over the sum of their norms",
)
