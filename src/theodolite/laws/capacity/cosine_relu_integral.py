r"""A cosine of any frequency is a mean of ReLUs with uniform kinks, weighed by $O(\alpha^2)$."""

import numpy as np
import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import cosine_density

KINKS, POINTS = 240, 720


def predict(frequency: float, phase: float, t: float) -> Band:
    """The mean over kinks, by Gauss' rule on either side of the taper's end."""
    x, w = (torch.as_tensor(a) for a in np.polynomial.legendre.leggauss(60))
    total = 0.0
    for low, high in ((-2.0, -1.0), (-1.0, t)):  # a ReLU sees only kinks below t
        kinks = low + (x + 1) * (high - low) / 2
        density = cosine_density(kinks, *torch.tensor([frequency, phase], dtype=torch.float64))
        total += float((w * density * (t - kinks)).sum()) * (high - low) / 8
    # broken lines with kinks 2/240 apart miss a cosine by alpha^2 (2/240)^2 / 8 at most, and the best fit by less
    return Band.around(total, abs=1e-9 + (2 * frequency / KINKS) ** 2 / 8)


def measure(frequency: float, phase: float, t: float, *, cover: float = 1.0) -> float:
    """What a layer of ReLUs fitted by least squares to the cosine's values on [-1, 1] answers at t."""
    place = np.linspace(-1, 1, POINTS)
    kinks = np.linspace(-1, -1 + 2 * cover, KINKS)

    def units(x: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones_like(x), x, np.maximum(x[:, None] - kinks, 0.0)])

    weights = np.linalg.lstsq(units(place), np.cos(frequency * place + phase), rcond=None)[0]
    return float((units(np.array([t])) @ weights)[0])


law = Law(
    claim="On [-1, 1] every cosine is the mean of randomly shifted ReLUs under an explicit bounded density: the answer of a "
    "layer of ReLUs that was fitted to the cosine.",
    formula=r"\cos(\alpha t+\psi)=E_{T\sim U[-2,2]}\,\eta(T)\,(t-T)_+,\qquad|\eta|\le4\max(\alpha^2,6+4\alpha)",
    assumes={"kinks on all of [-1, 1]": {"cover": 0.8}},
    source="bresler2020",
    predict=predict,
    measure=measure,
    cases=tuple({"frequency": a, "phase": p, "t": t} for a in (0.5, 3.0, 10.0) for p, t in ((0.3, -0.8), (-2.0, 0.7))),
    full=tuple({"frequency": a, "phase": p, "t": t} for a in (1.0, 7.0) for p in (0.0, 1.5, 3.0) for t in (-0.99, 0.1)),
    quantity="a cosine by ReLUs",
)
