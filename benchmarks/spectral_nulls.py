r"""What noise looks like to the spectral instruments: run this module to write its table.

Spectra of Gaussian matrices over a grid of shapes are drawn exactly and fast (a bidiagonal matrix of chi variables has
the singular values of an n by p Gaussian one; source: dumitriu2002), measured as a user's weights are, and their
quantiles, smoothed over the side, stored beside the theory that reads them. Smaller side 8 to 4096, aspect ratio 1 to
128; about an hour of one core.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from theodolite.io.workers import completed
from theodolite.measure.spectra import marchenko_pastur_bulk, power_law
from theodolite.theory.spectra import tracy_widom_quantile
from theodolite.theory.spectra.nulls import GROWING, PATH, PROBABILITIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SIDES = (8, 12, 16, 19, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096)
RATIOS = (1.0, 1.5, 2.0, 4.0, 16.0, 128.0)
SMOOTH_FROM = 20
"""From this side on quantiles are smoothed; WeightWatcher changes its estimator there."""

STATISTICS = ("alpha", "weightwatcher alpha", "distance", "tail", "bulk", "excess")


def gaussian_spectrum(rows: int, columns: int, random: np.random.Generator) -> Floats:
    r"""The eigenvalues of $W^\top W$ for an n by p Gaussian W of entry variance 1/n, $n\ge p$, ascending."""
    from scipy.linalg import eigvalsh_tridiagonal

    on = random.chisquare(rows - np.arange(columns))  # squares of the diagonal
    off = random.chisquare(columns - 1 - np.arange(columns - 1))  # and of the entries beside it
    diagonal = on.copy()
    diagonal[1:] += off
    values: Floats = eigvalsh_tridiagonal(diagonal, np.sqrt(on[:-1] * off), lapack_driver="sterf", check_finite=False)
    return np.maximum(values, 0.0) / rows


def noise_statistics(rows: int, columns: int, random: np.random.Generator) -> tuple[float, ...]:
    """One draw of every statistic, in the order of ``STATISTICS``, and whether noise showed a spike."""
    values = gaussian_spectrum(rows, columns, random)
    fit, bulk = power_law(values), marchenko_pastur_bulk(values, rows, columns)
    other = power_law(values, rule="weightwatcher").alpha
    return (
        fit.alpha,
        other,
        fit.distance,
        fit.tail / columns,
        columns * bulk.distance,
        bulk.excess,
        float(bulk.spikes > 0),
    )


def _draws_of(side: int) -> int:
    """More where they are cheap: a draw costs the square of the side."""
    return int(np.clip(10_000 * (256 / side) ** 1.5, 400, 10_000))


def cell(side: int, ratio: float, seed: int) -> Floats:
    """The quantiles of every statistic at one shape, and in a last row how often noise showed a spike."""
    n = round(side * ratio)
    random = np.random.default_rng([seed, side, n])
    draws = np.array([noise_statistics(n, side, random) for _ in range(_draws_of(side))])
    quantiles = np.quantile(draws[:, :-1], PROBABILITIES, axis=0).T
    return np.vstack([quantiles, np.full(len(PROBABILITIES), draws[:, -1].mean())])


def null_table(seed: int = 0, *, jobs: int = 1) -> dict[str, object]:
    """Quantiles of every statistic for every side and ratio of the grid, and how often noise showed a spike."""
    tasks = [(p, ratio, seed) for p in reversed(SIDES) for ratio in RATIOS]  # the longest first
    cells: list[Floats] = [np.empty(0)] * len(tasks)
    for done, (index, found) in enumerate(completed(cell, tasks, jobs=jobs), start=1):
        cells[index] = found
        print(f"{done} of {len(tasks)} shapes", file=sys.stderr, flush=True)
    table = np.array(cells).reshape(len(SIDES), len(RATIOS), len(STATISTICS) + 1, len(PROBABILITIES))[::-1]
    return {
        "seed": seed,
        "sides": SIDES,
        "ratios": RATIOS,
        "draws": [_draws_of(p) for p in SIDES],
        "probabilities": PROBABILITIES,
        "quantiles": {name: _rounded(_smoothed(table[:, :, k], name)) for k, name in enumerate(STATISTICS)},
        "spikes": _rounded(table[:, :, -1, 0]),
    }


def _smoothed(quantiles: Floats, statistic: str) -> Floats:
    """Each quantile as a smooth function of the side, least squares weighted by draws: large sides have few.

    A constant, side^(-1/3) (corrections at an edge) and one more term: the logarithm of the side for what grows without
    end, side^(-2/3) for what does not. The limit of the excess is known, and subtracted.
    """
    kept = np.asarray(SIDES) >= SMOOTH_FROM
    sides = np.asarray(SIDES, dtype=np.float64)[kept]
    weights = np.sqrt([_draws_of(int(p)) for p in sides])[:, None]
    third = np.log(sides) if statistic in GROWING else sides ** (-2 / 3)
    basis = np.stack([np.ones_like(sides), sides ** (-1 / 3), third], axis=1)
    if statistic == "excess":
        basis, limit = basis[:, 1:], np.array([tracy_widom_quantile(p) for p in PROBABILITIES])
        heights = quantiles - limit
    else:
        heights = np.log(quantiles)
    flat = heights[kept].reshape(sides.size, -1)
    smooth: Floats = basis @ np.linalg.lstsq(weights * basis, weights * flat, rcond=None)[0]
    heights[kept] = smooth.reshape(heights[kept].shape)
    return np.asarray(heights + limit if statistic == "excess" else np.exp(heights))


def _rounded(values: Floats) -> object:
    """Five significant digits: the simulation knows fewer."""
    return np.vectorize(lambda value: float(f"{value:.5g}"))(values).tolist()


if __name__ == "__main__":
    Path(PATH).write_text(
        json.dumps(null_table(jobs=int(sys.argv[1]) if len(sys.argv) > 1 else 1), separators=(",", ":")) + "\n"
    )
