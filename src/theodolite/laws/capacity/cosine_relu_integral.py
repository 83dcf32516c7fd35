r"""A cosine of any frequency is a mean of ReLUs with uniform kinks, weighed by $O(\alpha^2)$."""

import math

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import cosine_density


def predict(frequency: float, phase: float, t: float) -> Band:
    return Band(
        -1e-10, 1e-10
    )  # rounding of a density of size 4 alpha^2, 400 at most here, summed over 120 nodes: 1e-11


def nodes(low: float, high: float) -> tuple[Tensor, Tensor]:
    x, w = np.polynomial.legendre.leggauss(60)
    return torch.as_tensor(low + (x + 1) * (high - low) / 2), torch.as_tensor(w * (high - low) / 2)


def measure(frequency: float, phase: float, t: float, *, beyond: float = 0.0, taper: bool = True) -> float:
    t = t + beyond
    total = 0.0
    for low, high in ((-2.0, -1.0), (-1.0, min(t, 1.0))):  # a ReLU sees only kinks below t, and above 1 there are none
        kinks, weight = nodes(low, high)
        density = cosine_density(kinks, *torch.tensor([frequency, phase], dtype=torch.float64))
        if taper or low >= -1:
            total += float((weight * density * (t - kinks)).sum()) / 4
    return total - math.cos(frequency * t + phase)


law = Law(
    claim="On [-1, 1] every cosine is the mean of randomly shifted ReLUs under an explicit bounded density.",
    formula=r"\cos(\alpha t+\psi)=E_{T\sim U[-2,2]}\,\eta(T)\,(t-T)_+,\qquad|\eta|\le4\max(\alpha^2,6+4\alpha)",
    assumes={"a point of [-1, 1]": {"beyond": 1.5}, "a taper that starts the cosine": {"taper": False}},
    source="bresler2020",
    predict=predict,
    measure=measure,
    cases=tuple({"frequency": a, "phase": p, "t": t} for a in (0.5, 3.0, 10.0) for p, t in ((0.3, -0.8), (-2.0, 0.7))),
    full=tuple(
        {"frequency": a, "phase": p, "t": t} for a in (1.0, 7.0) for p in (0.0, 1.5, 3.0) for t in (-0.99, 0.1, 1.0)
    ),
    quantity="error of the identity",
)
