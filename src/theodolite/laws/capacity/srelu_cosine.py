r"""A cosine is a mean of smoothed ReLUs too, once the density is divided by the smoothing's transform."""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from theodolite.construct.capacity import SReLU
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import smoothed_cosine_density, smoothed_relu

WIDTH, PHASE = 0.5, 0.7
KINKS, POINTS = 200, 500


def predict(order: int, frequency: float, t: float) -> Band:
    """The mean over kinks; the integrand has knots at the taper's ends, at t and at every box of the smoothing."""
    x, w = (torch.as_tensor(a) for a in np.polynomial.legendre.leggauss(24))
    knots = sorted({-2 - WIDTH, -1 - WIDTH, *(t + WIDTH * j / order for j in range(-order, order + 1))})
    alpha, psi = torch.tensor(frequency, dtype=torch.float64), torch.tensor(PHASE, dtype=torch.float64)
    total = 0.0
    for low, high in pairwise(knots):
        kinks = low + (x + 1) * (high - low) / 2
        density = smoothed_cosine_density(kinks, alpha, psi, order=order, smoothing_width=WIDTH)
        total += float((w * density * smoothed_relu(t - kinks, order, smoothing_width=WIDTH)).sum()) * (high - low) / 2
    # splines of degree 2k + 1 follow a cosine far better than broken lines, which err by alpha^2 (3/200)^2 / 8 at most
    return Band.around(total / (2 * (2 + WIDTH)), abs=(3 * frequency / KINKS) ** 2 / 8)


def measure(order: int, frequency: float, t: float, *, fitted: str = "smoothed") -> float:
    """What a layer of smoothed ReLUs answers at t, its output weights fitted to the cosine on [-1, 1].

    With ``fitted`` "plain" the weights are those that plain ReLUs of the same kinks would have.
    """
    place = torch.linspace(-1.5, 1.5, POINTS, dtype=torch.float64)
    kinks = torch.linspace(-1.5, 1.5, KINKS, dtype=torch.float64)
    smooth = SReLU(order, smoothing_width=WIDTH)

    def units(x: Tensor, shape: torch.nn.Module) -> Tensor:
        return torch.cat([torch.ones(len(x), 1, dtype=x.dtype), x[:, None], shape(x[:, None] - kinks)], 1)

    used = smooth if fitted == "smoothed" else torch.nn.ReLU()
    wave = torch.cos(frequency * place + PHASE)[:, None]
    weights = torch.linalg.lstsq(units(place, used), wave, rcond=1e-10, driver="gelsd").solution
    return float(units(torch.tensor([t], dtype=torch.float64), smooth) @ weights)


law = Law(
    claim="Smoothing the units damps a cosine by a known factor; weights divided by it give the cosine back, as fitted ones do.",
    formula=r"E\,\eta(T)\,\mathrm{SReLU}_k(t-T)=\Bigl(\frac{\sin(\alpha h/2)}{\alpha h/2}\Bigr)^{2k}\cos(\alpha t+\psi),"
    r"\quad\alpha h<2\pi",
    assumes={"weights made for smoothed units": {"fitted": "plain"}, "frequencies below the first zero": None},
    source="bresler2020",
    predict=predict,
    measure=measure,
    cases=tuple({"order": k, "frequency": a, "t": t} for k in (1, 2) for a in (3.0, 9.0) for t in (-0.8, 0.6)),
    quantity="a cosine by smoothed ReLUs",
)
