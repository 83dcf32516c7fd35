r"""A cosine is a mean of smoothed ReLUs too, once the density is divided by the smoothing's transform."""

import math
from itertools import pairwise

import numpy as np
import torch

from theodolite.construct.capacity import SReLU
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import cosine_density, smoothed_cosine_density

WIDTH, PHASE = 0.5, 0.7


def predict(order: int, frequency: float, t: float) -> Band:
    return Band(-1e-9, 1e-9)  # rounding of a density of some 1e3, summed


def measure(order: int, frequency: float, t: float, *, deconvolved: bool = True) -> float:
    x, w = np.polynomial.legendre.leggauss(24)
    # The integrand has knots at the taper's ends, at t and at every box of the smoothing
    knots = sorted({-2 - WIDTH, -1 - WIDTH, *(t + WIDTH * j / order for j in range(-order, order + 1))})
    alpha, psi = torch.tensor(frequency, dtype=torch.float64), torch.tensor(PHASE, dtype=torch.float64)
    total = 0.0
    for low, high in pairwise(knots):
        kinks = torch.as_tensor(low + (x + 1) * (high - low) / 2)
        if deconvolved:
            density = smoothed_cosine_density(kinks, alpha, psi, order=order, smoothing_width=WIDTH)
        else:
            density = cosine_density(kinks, alpha, psi, half=1 + WIDTH)
        values = density * SReLU(order, smoothing_width=WIDTH)(t - kinks)
        total += float((torch.as_tensor(w) * values).sum()) * (high - low) / 2
    return total / (2 * (2 + WIDTH)) - math.cos(frequency * t + PHASE)


law = Law(
    claim="Smoothing the units damps a cosine by a known factor; weights divided by it give the cosine back.",
    formula=r"E\,\eta(T)\,\mathrm{SReLU}_k(t-T)=\Bigl(\frac{\sin(\alpha h/2)}{\alpha h/2}\Bigr)^{2k}\cos(\alpha t+\psi),"
    r"\quad\alpha h<2\pi",
    assumes={"a density divided by the damping": {"deconvolved": False}, "frequencies below the first zero": None},
    source="bresler2020",
    predict=predict,
    measure=measure,
    cases=tuple({"order": k, "frequency": a, "t": t} for k in (1, 2) for a in (3.0, 9.0) for t in (-0.8, 0.6)),
    quantity="error of the identity",
)
