"""TwoNN held against data whose dimension is known: cubes and Gaussians of as many rows."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from theodolite.core.checks import at_least
from theodolite.core.reading import Estimate
from theodolite.measure.dimension.by_distances import twonn_fit
from theodolite.measure.dimension.by_variance import dimension_pca
from theodolite.measure.dimension.prepared_rows import distinct_rows

DRAWS = 3
BENT = 1.3
"""So many times the dimension, and one more: data with as many directions for 95 % of its variance bends through them."""


def dimension_calibrated(x: Any, *, most: int = 1500, largest: int = 400) -> Estimate:
    """The dimension of a cube, or of a Gaussian, of as many rows, on which TwoNN would read what it reads here.

    Nearest neighbors in many dimensions sit near the edge of the data, so that TwoNN reads low: 17.6 of 20 at 1,500 rows.
    Cube and Gaussian give two answers; the value is their mean, and half their difference is part of the error. Both are flat:
    where the linear hull shows that the data bends, which makes TwoNN read high, half the correction is part of the error
    too (a curled manifold of 12 dimensions in 72 columns reads 13.4 and is corrected to 16). Of larger data ``most`` rows are
    drawn.
    """
    at_least(0, largest=largest)
    rows = distinct_rows(x).sample(most)
    seen = twonn_fit(rows, rule="likelihood").estimate
    found = [_inverted(seen.value, len(rows), kind, largest) for kind in ("cube", "gauss")]
    value = sum(place for place, _ in found) / 2
    slope = sum(slope for _, slope in found) / 2
    apart = abs(found[0][0] - found[1][0]) / 2
    bent = dimension_pca(rows).value > BENT * value + 1
    doubt = abs(value - seen.value) / 2 if bent else 0.0
    return Estimate(value, math.hypot(seen.stderr / slope, apart, doubt), seen.scale)


def _inverted(target: float, count: int, kind: str, largest: int) -> tuple[float, float]:
    """Where the reading of reference data passes the target, and how fast the reading grows there."""
    low = max(1, min(int(0.8 * target), largest - 1))  # edges make readings low, never high by so much
    high = low + 1
    while high < largest and _reference_reading(high, count, kind) < target:
        low, high = high, min(largest, high + max(1, high // 2))
    while high - low > max(1, low // 8):
        middle = (low + high) // 2
        low, high = (middle, high) if _reference_reading(middle, count, kind) < target else (low, middle)
    ends = [_reference_reading(d, count, kind) for d in (low, high)]
    slope = max((ends[1] - ends[0]) / (high - low), 0.05)
    return max(0.5, low + (target - ends[0]) / slope), slope


@lru_cache(maxsize=512)
def _reference_reading(dimension: int, count: int, kind: str) -> float:
    """The mean TwoNN over three draws of a uniform cube or a Gaussian of this dimension and number of rows."""
    draw: Callable[..., torch.Tensor] = torch.rand if kind == "cube" else torch.randn
    generator = torch.Generator().manual_seed(1000 * dimension + count)
    draws = [draw(count, dimension, generator=generator, dtype=torch.float64) for _ in range(DRAWS)]
    return sum(twonn_fit(x, rule="likelihood").estimate.value for x in draws) / DRAWS
