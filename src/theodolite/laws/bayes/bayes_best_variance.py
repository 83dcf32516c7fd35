r"""The prior variance of largest evidence at any sizes, and the posterior of the scale there, by integrals over the prior."""

import math
from collections.abc import Callable

import numpy as np

from theodolite.core.law import Law
from theodolite.theory.bayes import LinearNet, best_variance, log_scale_density

NORM2, POINTS = 2.0, 600


def predict(inputs: int, samples: int, widths: tuple[int, ...], what: str) -> float:
    if what == "variance of largest evidence":
        return best_variance(LinearNet(inputs, widths), samples=samples, norm2=NORM2)
    net = LinearNet(inputs, widths, 1.5)
    return float(np.exp(log_scale_density(net, np.array([-0.5]), samples=samples, norm2=NORM2))[0])


def measure(inputs: int, samples: int, widths: tuple[int, ...], what: str, *, lighter: float = 1.0) -> float:
    """The squared scale is a product of chi-squares: their densities, convolved on a grid of its logarithm."""
    grid, density = _log_product(widths, lighter)

    def fit(log_variance: float) -> np.ndarray:
        log_tau2 = grid + (len(widths) + 1) * log_variance - math.log(inputs)
        return np.exp(-0.5 * samples * log_tau2 - 0.5 * NORM2 * np.exp(-log_tau2)) * density  # type: ignore[no-any-return]

    if what == "variance of largest evidence":
        return math.exp(_highest(lambda s: float(np.log(fit(s).sum())), -3.0, 4.0))
    whole = fit(math.log(1.5))
    at = -0.5 - (len(widths) + 1) * math.log(1.5) + math.log(inputs)
    return float(np.interp(at, grid, whole) / (whole.sum() * (grid[1] - grid[0])))


def _log_product(widths: tuple[int, ...], lighter: float) -> tuple[np.ndarray, np.ndarray]:
    """The density of the log of a product of mean-one chi-squares."""
    axis = np.linspace(-12.0, 6.0, POINTS * 5)
    step = axis[1] - axis[0]
    density, low = None, 0.0
    for n in widths:
        k = 0.5 * n * lighter
        one = np.exp(k * (axis + math.log(k) - np.exp(axis)) - math.lgamma(k))
        density = one if density is None else np.convolve(density, one) * step
        low += axis[0]
    assert density is not None
    return low + step * np.arange(len(density)), density


def _highest(function: Callable[[float], float], low: float, high: float) -> float:
    """Of a function with one maximum, by thirds."""
    for _ in range(80):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (first, high) if function(first) < function(second) else (low, second)
    return 0.5 * (low + high)


law = Law(
    claim="For narrow networks and few samples too the evidence has its maximum, and the scale of the weights its posterior, "
    "where the Meijer functions put them.",
    formula=r"\frac{G(x|\frac P2+1,\frac{n_1}2,\dots)}{G(x|\frac P2,\frac{n_1}2,\dots)}=\frac P2\ \text{at}\ "
    r"x=\|\theta_*\|^2/M(\sigma_*)",
    assumes={"layers as wide as supposed": {"lighter": 0.99}},
    source="hanin2023",
    predict=predict,
    measure=measure,
    cases=(
        {"inputs": 6, "samples": 4, "widths": (5,), "what": "variance of largest evidence"},
        {"inputs": 8, "samples": 3, "widths": (4, 7), "what": "variance of largest evidence"},
        {"inputs": 6, "samples": 4, "widths": (5,), "what": "density of the log scale"},
        {"inputs": 8, "samples": 3, "widths": (4, 7), "what": "density of the log scale"},
    ),
    tolerance=5e-4,  # a grid of steps 0.006, read between its points
    quantity="variance, or density",
)
