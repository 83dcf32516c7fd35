r"""Correction spends smoothness: as the first group's smoothing h vanishes, the second group's error grows as $1/h$."""

import math

import torch
from torch import Tensor

from theodolite.construct.capacity import profile_units
from theodolite.core.law import Law
from theodolite.theory.capacity import RadialFunction, smoothing_density

DRAWS, POINTS, UNITS = 1200, 9, 24


def bell() -> RadialFunction:
    return RadialFunction(lambda rho: math.sqrt(2 * math.pi) * torch.exp(-rho.square() / 2))


def predict(box: float) -> float:
    """Both groups' variances, exactly: sums over fine grids of kinks T of the first group and s of the second."""
    half, times = 1 + box, torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    kinks, dT = _grid(-half, half, 2000)
    s, ds = _grid(-1.0, 1.0, 1200)
    first = bell().profile(kinks, derivative=2, order=1, box=box)
    bumps = smoothing_density(s[:, None] - kinks, 1, smoothing_width=box)  # (s, T)
    curve = bell().profile(s, derivative=2)
    # E of the remainder's density squared
    left = (2 * half * (bumps.square() @ first.square()) * dT - curve.square()) / UNITS
    reach = (times[:, None] - s).clamp(min=0)  # (t, s)
    seen = 2 * half * ((reach @ bumps * ds).square() @ first.square()) * dT - (reach @ curve * ds).square()
    return float((2 * (reach.square() @ left) * ds - seen / UNITS).mean()) / UNITS


def _grid(low: float, high: float, count: int) -> tuple[Tensor, float]:
    step = (high - low) / count
    return low + step * (torch.arange(count, dtype=torch.float64) + 0.5), step


def measure(box: float, *, generator: torch.Generator, groups: int = 2) -> Tensor:
    t = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    made, affine = profile_units(bell(), groups=groups, units=UNITS, box=box, profiles=DRAWS, generator=generator)
    values = sum((group.values(t) for group in made), affine[:, :1] + affine[:, 1:] * (t + 1))
    return (values - torch.exp(-t.square() / 2)).square().mean(1)


law = Law(
    claim="A group of plain ReLUs cannot be corrected: the remainder's second derivative is then a sum of point masses. Units "
    "smoothed over h can, at a cost that grows as 1/h.",
    formula=r"E\|f-\hat f\|^2=\frac1N\Bigl\langle2\int E\rho_2^2\,(t-T)_+^2dT-E r^2\Bigr\rangle_t,\quad "
    r"E\rho_2^2=\frac1N\Bigl(2(1+h)\int\rho_1^2B_1^2-g''^2\Bigr),\ \int B_1^2=\frac{2}{3h}",
    assumes={"a group that corrects another": {"groups": 1}},
    source="bresler2020, Theorem 2",
    predict=predict,
    measure=measure,
    cases=tuple({"box": h} for h in (0.02, 0.06, 0.18)),
    repeats=4,
    # The squared error of one draw scatters 1.6 times as much as it is: 4800 know its mean to 2.3 %. Three such errors are the
    # interval, four more leave room for where it falls
    tolerance=0.16,
    quantity="mean squared error after two groups",
    along="box",
)
