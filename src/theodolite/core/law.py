"""A law: a theorem that can be run. Prediction and experiment, case by case, end in a verdict."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from theodolite.core.checks import InputError
from theodolite.core.randomness import case_generator
from theodolite.core.reading import Band, Estimate, Reading, Series
from theodolite.core.statistics import log_slope, pooled_estimate

Case = Mapping[str, Any]
Size = Literal["quick", "full"]
Predict = Callable[..., float | Band]
OUTSIDE = ("above", "below")
OF_BANDS, OF_BOUNDS = 1.2, 3.0  # a law that holds with its prediction off by such a factor must say so
AGAIN = (4, 16)
"""So many times the samples a case is given that is inconclusive, one after the other, and no more."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """``predict(**case)`` against ``measure(**case, generator=...)``, within a relative ``tolerance``.

    ``predict`` returns a number, or a `Band` (one-sided, or of absolute width). ``measure`` returns a number, many
    independent draws of it, or an `Estimate`; it runs ``repeats`` times, or once if it takes no ``generator``. With
    ``exponent="n"`` the law predicts the slope of log measured on log n; ``along`` names the axis of the figure.
    ``assumes`` maps each assumption to the keywords of ``measure`` that break it, or None where no experiment can.
    ``resolution`` is stated by a law that cannot tell its prediction from one 1.2 times off (a bound: 3 times), with the
    reason in a comment beside it. ``observed`` says why the numbers of ``predict`` are not derived: such a law reports.
    A case that is inconclusive is measured again with up to 16 times the samples.
    """

    claim: str
    formula: str
    assumes: Mapping[str, Mapping[str, Any] | None]
    source: str
    predict: Predict
    measure: Callable[..., Any]
    cases: tuple[Case, ...]
    full: tuple[Case, ...] = ()
    tolerance: float = 0.0
    repeats: int = 8
    quantity: str = ""
    along: str | None = None
    exponent: str | None = None
    erratum: str | None = None
    refuted: Predict | None = None  # the literature's wrong form
    resolution: float | None = None
    observed: str = ""
    name: str = ""
    topic: str = ""

    def cases_of(self, size: Size) -> tuple[Case, ...]:
        """The cases of a size: ``full`` adds its own and repeats every measurement eight times as often."""
        return self.cases if size == "quick" else self.cases + self.full

    def measured(
        self, case: Case, *, breaking: str | None = None, size: Size = "quick", seed: int = 0, times: int = 1
    ) -> Estimate:
        """One case of the experiment, repeated so many ``times`` as often; its randomness depends on (seed, case) alone."""
        if breaking is not None and not self.assumes.get(breaking):
            can = [text for text, change in self.assumes.items() if change]
            raise InputError(f"expected one of the assumptions that can be broken, {can}, got {breaking!r}")
        keywords = {**case, **(self.assumes[breaking] or {})} if breaking else dict(case)
        if "generator" not in inspect.signature(self.measure).parameters:
            return pooled_estimate([self.measure(**keywords)], certain=True)
        generator = case_generator(seed, case)
        repeats = self.repeats * (1 if size == "quick" else 8) * times
        return pooled_estimate([self.measure(**keywords, generator=generator) for _ in range(repeats)])

    def verdict(self, estimates: Sequence[Estimate], *, size: Size = "quick") -> Verdict:
        """Lay the estimates of all cases beside their predictions."""
        pairs = list(zip(self.cases_of(size), estimates, strict=True))
        wrong = tuple(self._readings(self.refuted, pairs)) if self.refuted else ()
        return Verdict(self, tuple(self._readings(self.predict, pairs)), wrong, size)

    def decided(self, estimates: Sequence[Estimate], *, size: Size = "quick", seed: int = 0) -> list[Estimate]:
        """The estimates; those of cases that are inconclusive from 4, then from 16 times the samples."""
        found, cases = list(estimates), self.cases_of(size)
        if "generator" not in inspect.signature(self.measure).parameters:  # nothing is drawn: it would say the same
            return found
        for times in AGAIN:
            for place in self._inconclusive(found, size):
                found[place] = self.measured(cases[place], size=size, seed=seed, times=times)
        return found

    def _inconclusive(self, estimates: Sequence[Estimate], size: Size) -> list[int]:
        """The places of the cases that leave open whether the law holds."""
        verdict = self.verdict(estimates, size=size)
        open_ones = [place for place, reading in enumerate(verdict.readings) if reading.status == "inconclusive"]
        unrefuted = verdict.refuted and not any(r.status in OUTSIDE for r in verdict.refuted)
        if unrefuted or (open_ones and self.exponent is not None):  # these rest on all cases together
            return list(range(len(estimates)))
        return open_ones

    def check(self, breaking: str | None = None, *, size: Size = "quick", seed: int = 0) -> Verdict:
        """Run the law; with ``breaking`` one of its assumptions is broken, and it should then not hold."""
        found = [self.measured(case, breaking=breaking, size=size, seed=seed) for case in self.cases_of(size)]
        return self.verdict(found if breaking else self.decided(found, size=size, seed=seed), size=size)

    def breaks(self, assumption: str, *, size: Size = "quick", seed: int = 0) -> bool:
        """Whether some reading is decisively outside without the assumption: measured only until the first that is."""
        if self.exponent is not None:
            return self.check(assumption, size=size, seed=seed).broken
        found = ((case, self.measured(case, breaking=assumption, size=size, seed=seed)) for case in self.cases_of(size))
        return any(r.status in OUTSIDE for pair in found for r in self._readings(self.predict, [pair]))

    def _readings(self, predict: Predict, pairs: Sequence[tuple[Case, Estimate]]) -> Iterator[Reading]:
        quantity = self.quantity or self.name
        if self.exponent is None:
            for case, got in pairs:
                band = self._band(predict(**case))
                yield Reading(
                    quantity=quantity, measured=got.value, stderr=got.stderr, expected=band, where=_words(case)
                )
            return
        groups: dict[str, list[tuple[Case, Estimate]]] = {}
        for case, got in pairs:
            groups.setdefault(_words(case, without=self.exponent), []).append((case, got))
        for where, members in groups.items():
            x = tuple(float(case[self.exponent]) for case, _ in members)
            values, errors = zip(*((got.value, got.stderr) for _, got in members), strict=True)
            slope = log_slope(x, [got for _, got in members])
            rest = {key: value for key, value in members[0][0].items() if key != self.exponent}
            yield Reading(
                quantity=f"exponent of {quantity} in {self.exponent}",
                measured=slope.value,
                where=where,
                stderr=slope.stderr,
                expected=self._band(predict(**rest)),
                series=Series(x, values, errors, x_label=self.exponent, y_label=quantity, log="xy"),
            )

    def _band(self, prediction: float | Band) -> Band:
        return prediction if isinstance(prediction, Band) else Band.around(prediction, rel=self.tolerance)


@dataclass(frozen=True)
class Verdict:
    """What was seen beside what a law says, and (``refuted``) beside the literature's wrong form."""

    law: Law
    readings: tuple[Reading, ...]
    refuted: tuple[Reading, ...] = ()
    size: Size = "quick"

    @property
    def holds(self) -> bool:
        """Every reading agrees, and the wrong form, where there is one, is refuted by at least one of them."""
        wrong_form_fails = not self.refuted or any(r.status in OUTSIDE for r in self.refuted)
        return wrong_form_fails and all(r.status == "agrees" for r in self.readings)

    @property
    def broken(self) -> bool:
        """Some reading lies decisively outside its band: more than merely inconclusive."""
        return any(r.status in OUTSIDE for r in self.readings)

    @property
    def resolution(self) -> float | None:
        """The largest factor by which predictions could be off while the law held; None where it fails or says but zeros."""
        return largest_factor(self.readings) if self.holds else None

    @property
    def sharp(self) -> bool:
        """Whether a prediction 1.2 times off (a bound: 3 times), or as far off as the law states, would be noticed."""
        allowed = self.law.resolution or least_resolution(self.readings)
        return self.resolution is None or self.resolution <= allowed


def _words(case: Case, *, without: str | None = None) -> str:
    return ", ".join(f"{key}={value}" for key, value in case.items() if key != without)


def largest_factor(readings: Sequence[Reading]) -> float | None:
    """The largest factor, up or down, with which all readings would still agree; None where there is nothing to scale.

    Of a band the middle is multiplied and the width stays; of a bound only the direction that makes it tighter counts. A zero
    and a sign are changed by no factor.

    >>> largest_factor([Reading(quantity="x", measured=2.0, expected=Band(high=5.0))])
    2.5
    """
    spans = [span for span in map(_factors, readings) if span]
    down = min((1 / low if low > 0 else math.inf for low, _ in spans if low > -math.inf), default=1.0)
    up = min((high for _, high in spans if high < math.inf), default=1.0)
    return max(up, down) if spans else None


def least_resolution(readings: Sequence[Reading]) -> float:
    """What is asked where nothing coarser is stated: 1.2, or 3 where every reading stands beside a one-sided bound."""
    bands = [r.expected for r in readings if r.expected is not None]
    return OF_BOUNDS if all(math.inf in (-band.low, band.high) for band in bands) else OF_BANDS


def _factors(reading: Reading) -> tuple[float, float] | None:
    """The least and the largest factor of its prediction with which a reading agrees; an infinite end does not bind."""
    band = reading.expected
    if band is None or band.middle == 0 or math.isinf(band.middle):
        return None
    low, high = reading.interval
    if band.middle < 0:
        band, low, high = Band(-band.high, -band.low), -high, -low
    if math.isinf(band.low):
        return high / band.high, math.inf
    if math.isinf(band.high):
        return -math.inf, low / band.low
    half = 0.5 * (band.high - band.low)
    return (high - half) / band.middle, (low + half) / band.middle
