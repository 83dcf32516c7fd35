"""The tail, the bulk and the noise test of every weight matrix: found while the tensor is in memory, kept by its name.

Noise is what the matrix's own entries would be in random places. Where they are not much heavier than Gaussian ones the
spectrum of a Gaussian matrix says what that looks like. Where they are, large entries alone make large eigenvalues; there what
seems to be structure must be seen once more in the ranks of the entries, which are those of a Gaussian matrix whatever the law.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from theodolite.core.lazy_torch import array_of
from theodolite.core.randomness import case_random
from theodolite.core.reading_table import known_number
from theodolite.core.subject import Subject
from theodolite.instruments._common.spectra import eigenvalues_of, matrices_of
from theodolite.instruments._common.weights import weighed
from theodolite.io.weight_parts import InHand, WeightPart
from theodolite.measure.spectra.bulk import Bulk, marchenko_pastur_bulk
from theodolite.measure.spectra.entries import entry_kurtosis, normal_scores, score_eigenvalues
from theodolite.measure.spectra.tails import PowerLaw, bootstrap_p_value, power_law
from theodolite.measure.spectra.weight_spectra import Spectrum
from theodolite.theory.spectra.nulls import SMALLEST, null_alpha, structure

LEVEL = 0.05
REFITS, MOST = 100, 2048
"""Bootstrap refits behind a goodness of fit, and the number of eigenvalues up to which it is taken."""

HEAVIER, ERRORS = 0.1, 2.0
"""A kurtosis above 3 by this much, and by this many of its errors, is taken to be heavier than a Gaussian one."""


@dataclass(frozen=True)
class Tail:
    """The fits of one matrix, and how surprising its spectrum is; ``ranked`` are those of the ranks where these judge.

    ``p_value`` is of this matrix alone: a survey of many corrects it.
    """

    fit: PowerLaw
    bulk: Bulk
    kurtosis: float
    heavy: bool
    p_value: float
    cause: str
    ranked_alpha: float
    ranked_spikes: int | None


def layer_tails(subject: Subject) -> dict[str, Tail]:
    """Of every matrix that has a spectrum to fit, by name."""
    found = weighed(subject, "spectra", "tails")["tails"].values()
    return {row["name"]: _tail_of(row) for stored in found for row in stored.value}


def _tail_of(row: dict[str, Any]) -> Tail:
    fit, bulk = dict(row["fit"]), dict(row["bulk"])
    for key in ("alpha", "xmin", "distance", "stderr"):
        fit[key] = known_number(fit[key])
    for key in ("variance", "low", "high", "threshold", "share", "excess", "distance"):
        bulk[key] = known_number(bulk[key])
    return Tail(
        PowerLaw(**fit),
        Bulk(**bulk),
        kurtosis=known_number(row["kurtosis"]),
        heavy=row["heavy"],
        p_value=row["p_value"],
        cause=row["cause"],
        ranked_alpha=known_number(row["ranked_alpha"]),
        ranked_spikes=row["ranked_spikes"],
    )


def _find(held: InHand) -> tuple[Any, dict[str, Any]]:
    rows = []
    for part in matrices_of(held):
        if part.matrix is None:
            continue
        values = eigenvalues_of(held, part)
        spectrum = Spectrum(values, part.matrix.shape[0], part.matrix.shape[1], part.matrix.dtype)
        if not spectrum.reason:
            tail = tail_of(part.matrix, values, name=part.name)
            rows.append({"name": part.name, **vars(tail), "fit": _fields(tail.fit), "bulk": _fields(tail.bulk)})
    return rows, {}


def _fields(fit: PowerLaw | Bulk) -> dict[str, Any]:
    """What `asdict` gives, without the copies that it makes of numbers and words."""
    return {field.name: getattr(fit, field.name) for field in fields(fit)}


def tail_of(matrix: Any, eigenvalues: np.ndarray, *, name: str = "") -> Tail:
    """The fits of a matrix with these eigenvalues and the test of noise; the ``name`` seeds what is drawn at random."""
    rows, columns = matrix.shape
    fit = power_law(eigenvalues)
    if REFITS and _says_something(fit, rows, columns) and len(eigenvalues) <= MOST:
        generator = case_random(0, {"matrix": name})
        fit = replace(fit, p_value=bootstrap_p_value(eigenvalues, fit, refits=REFITS, generator=generator))
    bulk = marchenko_pastur_bulk(eigenvalues, rows, columns)
    kurtosis = entry_kurtosis(matrix)
    heavy = kurtosis > 3 + max(HEAVIER, ERRORS * math.sqrt(24 / math.prod(matrix.shape)))
    seen = structure(rows, columns, alpha=fit.alpha, bulk_distance=bulk.distance, excess=bulk.excess)
    alpha, spikes, p_value, cause = math.nan, None, seen.p_value, seen.cause
    if heavy and (seen.at(LEVEL) or bulk.spikes):
        scores = normal_scores(matrix, generator=case_random(0, {"ranks": name}))
        ranked = score_eigenvalues(np.asarray(array_of(scores), dtype=np.float32))  # which they are, wherever from
        again, below = power_law(ranked), marchenko_pastur_bulk(ranked, *scores.shape)
        alpha, spikes = again.alpha, below.spikes
        judged = structure(
            scores.shape[0], scores.shape[1], alpha=alpha, bulk_distance=below.distance, excess=below.excess
        )
        p_value, cause = max((seen.p_value, seen.cause), (judged.p_value, judged.cause))
    return Tail(fit, bulk, kurtosis, heavy, p_value, cause, alpha, spikes)


def _says_something(fit: PowerLaw, rows: int, columns: int) -> bool:
    """Whether the exponent is one that noise of this shape would not have: else how well it fits is of no interest."""
    return min(rows, columns) >= SMALLEST and fit.alpha < null_alpha(rows, columns, significance=LEVEL).low


of_weight = WeightPart(_find, version=2)
