r"""Behind $C(C-1)$ eigenvalues of the Gauss-Newton matrix is a gap, which closes as the square of the spread within classes."""

import math

import torch
from torch.nn.functional import cross_entropy

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.measure.curvature import gauss_newton
from theodolite.theory import Mlp

INPUTS, EACH, SPREAD = 6, 12, 1e-3


def measure(classes: int, *, generator: torch.Generator, clusters: int = 1) -> float:
    """The power of the spread by which the eigenvalue behind the gap grows: one network, one noise, once and twice."""
    spec = Mlp(widths=(12,), activation="tanh", weight_variance=2.0, bias_variance=0.1)
    model = network(spec, INPUTS, classes, generator=generator, dtype=torch.float64)
    centers = 1.5 * torch.randn(classes * clusters, INPUTS, generator=generator, dtype=torch.float64)
    at = torch.arange(classes * EACH) % len(centers)
    noise = torch.randn(len(at), INPUTS, generator=generator, dtype=torch.float64)
    found = []
    for spread in (SPREAD, 2 * SPREAD):
        matrix = gauss_newton(model, cross_entropy, (centers[at] + spread * noise, at % classes)).dense()
        found.append(float(torch.linalg.eigvalsh(matrix)[-1 - classes * (classes - 1)]))
    return math.log2(found[1] / found[0])


law = Law(
    claim="Samples at the centers of their classes give C(C-1) eigenvalues, by class and by pair of classes, and no others; what "
    "stands behind grows as the square of the spread. The levels are apart only where the spread is small.",
    formula=r"\mathrm{rank}\,G=C(C-1)\ \text{at}\ \sigma=0,\qquad\lambda_{C(C-1)+1}\propto\sigma^2",
    assumes={"one cluster for each class": {"clusters": 2}, "a generic network with parameters to spare": None},
    source="papyan2020traces",
    predict=lambda **case: 2.0,
    measure=measure,
    cases=({"classes": 3}, {"classes": 4}, {"classes": 5}),
    full=({"classes": 6},),
    repeats=5,
    tolerance=0.03,  # the next order is the spread over the distance to where the network bends, some thousandths
    quantity="power of the spread",
    along="classes",
)
