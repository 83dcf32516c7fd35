"""How many dimensions an objective needs: the smallest random subspace in which training does nearly as well."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError, at_least
from theodolite.core.reading import Estimate, Series
from theodolite.core.statistics import student_inflation
from theodolite.io.workers import Processes, completed

START, LADDER, CLOSE = 8, 4.0, 1.25  # first dimension, factor between rungs, ratio of the bracket that ends the search
NEAR, DRAWS = 2.5, 400  # the noise is that of scores within this factor of the crossing; draws of it for the error
Train = Callable[[int | None, int], Any]


@dataclass(frozen=True)
class ObjectiveDimension:
    """The dimension at which the score crosses ``fraction`` of the full model's, and the curve it was read from.

    ``value`` is not a number where the largest dimension did not reach the target.
    """

    value: float
    stderr: float
    fraction: float
    full: Estimate
    dimensions: tuple[int, ...]
    scores: tuple[tuple[float, ...], ...]  # for each dimension one for each seed

    @property
    def target(self) -> float:
        """The score to reach."""
        return self.fraction * self.full.value

    @property
    def estimate(self) -> Estimate:
        """Value and error alone."""
        return Estimate(self.value, self.stderr)

    @property
    def series(self) -> Series:
        """Score against dimension, and the target as a line."""
        own = [_estimate(scores) for scores in self.scores]
        x = tuple(float(d) for d in self.dimensions)
        return Series(
            x,
            tuple(e.value for e in own),
            tuple(e.stderr for e in own),
            x_label="dimension",
            y_label="score",
            log="x",
            line=(self.target,) * len(x),
            line_label=f"{self.fraction:g} of full training",
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row for each dimension: mean score, its error, the fraction of the full score, the number of seeds."""
        found = []
        for dimension, scores in zip(self.dimensions, self.scores, strict=True):
            own = _estimate(scores)
            found.append(
                {
                    "dimension": dimension,
                    "score": own.value,
                    "stderr": own.stderr,
                    "fraction": own.value / self.full.value,
                    "seeds": len(scores),
                }
            )
        return found

    def text(self) -> str:
        """The answer in a sentence and the table under it."""
        said = f"d{100 * self.fraction:.0f} = {self.value:.0f} ± {self.stderr:.0f}"
        if math.isnan(self.value):
            said = f"{100 * self.fraction:.0f} % of the full score is not reached by {max(self.dimensions)} dimensions"
        lines = [f"{said}  (full score {self.full.value:.4g} ± {self.full.stderr:.2g}, target {self.target:.4g})"]
        lines += [
            f"{r['dimension']:>9} {r['score']:9.4f} ± {r['stderr']:.4f}  {r['fraction']:6.1%}" for r in self.rows()
        ]
        return "\n".join(lines)

    __str__ = text


def objective_dimension(
    train: Train,
    evaluate: Callable[[Any], float],
    *,
    fraction: float = 0.9,
    repeats: int = 3,
    largest: int | None = None,
    out: Path | str | None = None,
    jobs: int = 1,
) -> ObjectiveDimension:
    r"""$d_{90}$: the smallest dimension whose subspace reaches ``fraction`` of the score of full training, ± its error.

    ``train(dimension, seed)`` trains anew and returns whatever ``evaluate`` scores; ``dimension=None`` asks for full
    training; ``evaluate(trained)`` is a positive number, larger for better. A ladder of dimensions brackets the target,
    bisection in log d closes in, every dimension with ``repeats`` seeds. The value is where the rising curve through the
    mean scores meets the target (NaN where none does); its error is the spread of that place when scores and target err as
    the seeds do.
    ``out`` is a folder in which each score is noted as it comes and found again by a later run;
    ``jobs`` trainings run at once.

    Source: li2018. Differs from the source: an error bar, and a crossing that is interpolated instead of read off.

    >>> found = objective_dimension(lambda d, seed: d, lambda d: 1.0 if d is None else d / (d + 10))
    >>> abs(found.value - 90) < 5
    True
    """
    at_least(1, repeats=repeats, largest=largest)
    if not 0 < fraction < 1:
        raise InputError(f"expected a fraction between 0 and 1, got {fraction}; use fraction=0.9")
    with Processes(jobs) as processes:
        book = _Scores(train, evaluate, repeats, Path(out) if out is not None else None, processes)
        return _answer(book, fraction, largest)


def _answer(book: _Scores, fraction: float, largest: int | None) -> ObjectiveDimension:
    book.need([None])
    full = _estimate(book.of(None))
    if not full.value > 0:
        raise InputError(
            f"expected a positive score of full training, got {full.value:.4g}; return one that grows with quality"
        )
    low, high = _bracket(book, fraction * full.value, largest)
    if high is not None:
        _close_in(book, fraction * full.value, low, high)
    dimensions = book.dimensions()
    scores = tuple(book.of(d) for d in dimensions)
    value, error = (math.nan, math.nan) if high is None else _crossing(dimensions, scores, book.of(None), fraction)
    return ObjectiveDimension(value, error, fraction, full, dimensions, scores)


class _Scores:
    """Scores by (dimension, seed), computed when needed, noted in a file."""

    def __init__(
        self, train: Train, evaluate: Callable[[Any], float], repeats: int, folder: Path | None, processes: Processes
    ) -> None:
        self.train, self.evaluate, self.repeats, self.processes = train, evaluate, repeats, processes
        self.path = folder / "scores.jsonl" if folder is not None else None
        self.found: dict[tuple[int | None, int], float] = {}
        if self.path is not None and self.path.exists():
            text = self.path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):  # the next note must not join a line cut short
                self.path.write_text(text + "\n", encoding="utf-8")
            for line in text.splitlines():
                try:
                    note = json.loads(line)
                    self.found[note["dimension"], note["seed"]] = float(note["score"])
                except (ValueError, KeyError, TypeError):  # a line cut short when a run was stopped
                    continue

    @property
    def at_once(self) -> int:
        """How many dimensions the workers can take together."""
        return max(1, self.processes.count // self.repeats)

    def need(self, dimensions: Iterable[int | None]) -> None:
        """Train what is not known yet."""
        tasks = [(d, s) for d in dimensions for s in range(self.repeats) if (d, s) not in self.found]
        work = [(self.train, self.evaluate, *task) for task in tasks]
        for index, score in completed(_score, work, jobs=self.processes.count, processes=self.processes):
            self.found[tasks[index]] = score
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as file:
                    note = {"dimension": tasks[index][0], "seed": tasks[index][1], "score": score}
                    file.write(json.dumps(note) + "\n")

    def of(self, dimension: int | None) -> tuple[float, ...]:
        """The scores of one dimension, seed by seed."""
        return tuple(self.found[dimension, seed] for seed in range(self.repeats))

    def mean(self, dimension: int) -> float:
        """Their mean, trained for if need be."""
        self.need([dimension])
        return sum(self.of(dimension)) / self.repeats

    def dimensions(self) -> tuple[int, ...]:
        """Those of which all seeds are known."""
        known = {d for d, _ in self.found if d is not None}
        return tuple(sorted(d for d in known if all((d, s) in self.found for s in range(self.repeats))))


def _score(train: Train, evaluate: Callable[[Any], float], dimension: int | None, seed: int) -> float:
    score = float(evaluate(train(dimension, seed)))
    if not math.isfinite(score):
        raise InputError(
            f"expected a finite score, got {score} at dimension {dimension}, seed {seed}; correct evaluate"
        )
    return score


def _bracket(book: _Scores, target: float, largest: int | None) -> tuple[int, int | None]:
    """Two dimensions, the lower below the target (or 0), the higher at or above it (None: not reached)."""
    rung, below = min(START, largest or START), 0
    while True:
        rungs = [rung]
        while len(rungs) < book.at_once and rungs[-1] != largest:
            rungs.append(_next(rungs[-1], largest))
        book.need(rungs)
        for rung in rungs:
            if book.mean(rung) >= target:
                while below == 0 and rung > 1 and book.mean(lower := max(1, round(rung / LADDER))) >= target:
                    rung = lower
                return below or (max(1, round(rung / LADDER)) if rung > 1 else 0), rung
            below = rung
            if rung == largest:
                return below, None
        rung = _next(rung, largest)


def _next(rung: int, largest: int | None) -> int:
    step = max(rung + 1, round(rung * LADDER))
    return step if largest is None else min(step, largest)


def _close_in(book: _Scores, target: float, low: int, high: int) -> None:
    while low >= 1 and high / low > CLOSE and high - low > 1:
        parts = book.at_once + 1
        between = sorted({round(low * (high / low) ** (k / parts)) for k in range(1, parts)} - {low, high})
        if not between:
            return
        book.need(between)
        passed = next((d for d in between if book.mean(d) >= target), high)
        low = max([d for d in between if d < passed], default=low)
        high = passed


def _crossing(
    dimensions: Sequence[int], scores: Sequence[tuple[float, ...]], full: tuple[float, ...], fraction: float
) -> tuple[float, float]:
    """Where the rising curve through the mean scores meets the target, and the spread of that place when they err.

    One noise is taken for all: that between seeds, of full training and of the dimensions near the crossing.
    """
    x, means = np.log(dimensions), np.array([np.mean(own) for own in scores])
    place, low, high = _meeting(x, means, fraction * float(np.mean(full)))
    if low == high:
        return float(np.exp(place)), 0.0
    seeds = len(full)
    if seeds == 1:  # the noise is not known: any place in the bracket
        return float(np.exp(place)), float(np.exp(place) * (high - low) / math.sqrt(12))
    near = np.abs(x - place) <= math.log(NEAR)
    groups = [*np.asarray(scores)[near], full]
    noise = math.sqrt(float(np.var(groups, axis=1, ddof=1).mean()) / seeds)
    draws = np.random.default_rng(0).normal(0.0, noise, (DRAWS, len(x) + 1))
    places = [_meeting(x, means + own[1:], fraction * float(np.mean(full) + own[0]))[0] for own in draws]
    inflation = student_inflation(len(groups) * (seeds - 1) + 1)
    return float(np.exp(place)), float(np.exp(place) * np.std(places) * inflation)


def _meeting(x: NDArray[np.float64], means: NDArray[np.float64], target: float) -> tuple[float, float, float]:
    """Where the isotonic fit, straight between its points, meets the target, and the two points it lies between."""
    from scipy.optimize import isotonic_regression

    curve = isotonic_regression(means).x
    if target <= curve[0] or target > curve[-1]:
        end = float(x[0] if target <= curve[0] else x[-1])
        return end, end, end
    after = int(np.searchsorted(curve, target))
    share = (target - curve[after - 1]) / (curve[after] - curve[after - 1])
    low, high = float(x[after - 1]), float(x[after])
    return low + float(share) * (high - low), low, high


def _estimate(scores: Sequence[float]) -> Estimate:
    """The mean and its plain standard error: of two or three seeds Student's factor would say nothing but "few"."""
    error = float(np.std(scores, ddof=1)) / math.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return Estimate(float(np.mean(scores)), error)
