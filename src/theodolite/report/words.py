"""The words, marks and numbers that terminal and page share."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from theodolite.core.law import Verdict
    from theodolite.core.question import Answer
    from theodolite.core.reading import Band, Reading

VerdictWord = Literal["holds", "broken", "inconclusive"]

MARKS: Mapping[str, str] = {
    "agrees": "✓",
    "above": "▲",
    "below": "▼",
    "not random": "◆",
    "inconclusive": "?",
    "invalid": "✗",
    "no reference": "○",
    "skipped": "–",
    "holds": "✓",
    "broken": "✗",
}
"""One sign for each status, so that it is read without color."""

STATUSES = ("above", "below", "invalid", "agrees", "not random", "inconclusive", "no reference")
TROUBLE = ("invalid", "above", "below")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_EXPONENT = re.compile(r"e([+-]\d+)")
_JOINERS = "\u200c\u200d"


def number(measured: float, stderr: float = 0.0) -> str:
    """Value ± error, the error with two digits; without an error, six significant digits.

    >>> number(3.56158, 0.00123)
    '3.5616 ± 0.0012'
    >>> number(3.5615528128)
    '3.56155'
    >>> number(3.4e-9, 2e-10)
    '(3.40 ± 0.20)×10⁻⁹'
    """
    if not math.isfinite(measured):
        return plain(measured)
    if not math.isfinite(stderr) or stderr < 0:
        return f"{plain(measured)} ± {'∞' if stderr == math.inf else '?'}"
    if stderr == 0:
        return plain(measured)
    power = _power(max(abs(measured), stderr))
    if stderr < 1e-9 * abs(measured):
        return f"{plain(measured, digits=10)} ± {plain(stderr, digits=2)}"
    if -5 < power < 6:
        digits = max(0, 1 - _power(float(f"{stderr:.1e}")))
        return f"{_fixed(measured, digits)} ± {_fixed(stderr, digits)}"
    value, error = measured / 10.0**power, stderr / 10.0**power
    digits = max(0, 1 - _power(float(f"{error:.1e}")))
    return f"({_fixed(value, digits)} ± {_fixed(error, digits)})×10{str(power).translate(_SUPERSCRIPT)}"


def plain(value: float, *, digits: int = 6) -> str:
    """A number alone, with typographic minus, powers of ten and infinity.

    >>> plain(-1.5e-12)
    '−1.5×10⁻¹²'
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return _EXPONENT.sub(_power_words, f"{value + 0.0:.{digits}g}").replace("-", "−")


def expectation(band: Band | None) -> str:
    """What theory expects, in words; a dash where it says nothing."""
    return "–" if band is None else _EXPONENT.sub(_power_words, str(band)).replace("-", "−")


def printable(text: Any) -> str:
    """The text with control, surrogate and invisible formatting characters made visible as �.

    >>> printable("a\\x1b[31mb")
    'a�[31mb'
    """
    words = str(text)
    if words.isprintable():  # nearly all are; a separator other than the space is not, and stays all the same
        return words
    return "".join("�" if _hidden(letter) else letter for letter in words)


def shortened(text: str, limit: int) -> str:
    """The text within a limit: the parts of a dotted name abbreviated, or else the middle left out.

    >>> shortened("transformer.layers.11.attention", 19)
    'tran.laye.11.atte'
    >>> shortened("the quick brown fox", 9)
    'the … fox'
    """
    if len(text) <= limit:
        return text
    parts = text.split(".")
    for letters in range(12, 0, -1) if len(parts) > 2 else ():
        brief = ".".join(part[:letters] for part in parts)
        if len(brief) <= limit:
            return brief
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


NEAR_ONE = 1.001
"""A factor below this is told by how far it is from one."""


def resolution_words(verdict: Verdict) -> str:
    """How far off a prediction could be before the check would notice."""
    factor = verdict.resolution
    if factor is None:
        return "a zero or a sign: no factor changes it" if verdict.holds else "unknown: the law does not hold"
    if factor < NEAR_ONE:
        return f"fails if every prediction is off by more than {plain(100 * (factor - 1), digits=1)} %"
    return f"fails if every prediction is off by a factor of more than {factor:.4g}"


def outcome(verdict: Verdict) -> VerdictWord:
    """Holds, broken, or neither: inconclusive."""
    if verdict.holds:
        return "holds"
    return "broken" if verdict.broken else "inconclusive"


def worst_reading(readings: Iterable[Reading]) -> Reading | None:
    """The reading furthest from its band, counted in widths of band and error; trouble before doubt."""
    return max(readings, key=lambda reading: (-WORST.index(reading.status), _strain(reading)), default=None)


def status_counts(answers: Iterable[Answer]) -> dict[str, int]:
    """How many readings have each status, in a fixed order."""
    seen = Counter(reading.status for answer in answers for reading in answer.readings)
    return {status: seen[status] for status in STATUSES}  # type: ignore[index]


COUNT_WORDS: Mapping[str, str] = {"agrees": "agree", "no reference": "without reference", "holds": "hold"}
"""How a status is said of several; others keep their word."""


def count_words(status: str, count: int) -> str:
    """How a status is said of so many.

    >>> count_words("agrees", 1), count_words("agrees", 2), count_words("holds", 1), count_words("above", 2)
    ('agrees', 'agree', 'holds', 'above')
    """
    return status if count == 1 and status in ("agrees", "holds") else COUNT_WORDS.get(status, status)


WORST = ("invalid", "above", "below", "not random", "inconclusive", "agrees", "no reference")
"""Statuses, those first that a reader should see first."""


def worst_status(readings: Iterable[Reading]) -> str:
    """The status of a group: that of the reading which should be seen first."""
    return min((reading.status for reading in readings), key=WORST.index, default="no reference")


def group_words(readings: Sequence[Reading]) -> tuple[str, str]:
    """All readings of a quantity in a few words, and what was expected: of those that leave the band, where there are any.

    >>> from theodolite.core.reading import Band, Reading
    >>> group_words([Reading(quantity="q", measured=x, expected=Band(1, 1)) for x in (0.33, 0.33, 1.0)])
    ('2 of 3: 0.33', '1')
    """
    worst = worst_status(readings)
    outside = worst in (*TROUBLE, "not random")
    told = [reading for reading in readings if not outside or WORST.index(reading.status) <= WORST.index("not random")]
    bands = {expectation(reading.expected) for reading in told}
    expected = bands.pop() if len(bands) == 1 else "one range each"
    if len(readings) == 1:
        return number(told[0].measured, told[0].stderr), expected
    values = sorted(reading.measured for reading in told if math.isfinite(reading.measured))
    if not values:
        return f"{len(told)} of {len(readings)}: not a number", expected
    low, high = plain(values[0], digits=3), plain(values[-1], digits=3)
    seen = low if low == high else f"{low} to {high}"
    return (f"{len(told)} of {len(readings)}: {seen}" if outside else f"all {len(readings)}: {seen}"), expected


def by_quantity(readings: Iterable[Reading]) -> list[tuple[str, list[Reading]]]:
    """The readings of each quantity together, in the order in which the quantities first appear."""
    groups: dict[str, list[Reading]] = {}
    for reading in readings:
        groups.setdefault(reading.quantity, []).append(reading)
    return list(groups.items())


def source_entries(source: str, references: Mapping[str, str]) -> list[str]:
    """Every source of a law spelled out: ``"key, Theorem 3; other"`` becomes the references with their places."""
    entries = []
    for part in source.split(";"):
        key, _, place = part.strip().partition(",")
        known = references.get(part.strip()) or references.get(key.strip(), key.strip())
        entries.append(f"{known.rstrip()} ({place.strip()})" if place and part.strip() not in references else known)
    return entries


def case_words(case: Mapping[str, Any]) -> str:
    """The keywords of a case as they are written in a call."""
    return ", ".join(f"{key}={value}" for key, value in case.items())


def _strain(reading: Reading) -> float:
    band = reading.expected
    if band is None or not math.isfinite(reading.measured):
        return 0.0
    half = (band.high - band.low) / 2 if math.isfinite(band.high - band.low) else abs(band.middle)
    scale = half + 3 * reading.stderr
    distance = abs(reading.measured - band.middle)
    return distance / scale if scale > 0 and math.isfinite(distance) else distance


def _power_words(found: re.Match[str]) -> str:
    return f"×10{str(int(found[1])).translate(_SUPERSCRIPT)}"


def _power(value: float) -> int:
    return math.floor(math.log10(value))


def _fixed(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def _hidden(letter: str) -> bool:
    return letter not in "\n\t" + _JOINERS and unicodedata.category(letter) in ("Cc", "Cf", "Cs")
