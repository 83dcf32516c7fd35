"""The ailments of depth, asked of random networks of a design under the advised and the usual initializations.

The networks have no weights to pass a batch through: what is drawn of them layer by layer stands for that pass, and the ailments
judge it as they judge a module.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torch import empty, nn

from theodolite import catalogue
from theodolite.core.ailment import Ailment, Finding, Severity, worst_first
from theodolite.core.reading import Reading
from theodolite.core.subject import Subject
from theodolite.measure.propagation.one_pass import LayerSigns, VitalSigns
from theodolite.verbs.diagnosis import Diagnosis

if TYPE_CHECKING:
    from theodolite.verbs.designing.advice import Design

CLAIMS = {
    "signal-vanishes": "The signal vanishes",
    "signal-explodes": "The signal explodes",
    "inputs-merge": "Different inputs become the same",
}
"""The ailments that are asked, and what each finding says first."""
UNASKED = "PyTorch default"
"""The initialization that a network has where nobody asked for one."""


def diagnosis_of_design(design: Design) -> Diagnosis:
    """The findings at this depth and width: critical under the advised initialization, a warning under the default one."""
    readings: dict[str, list[Reading]] = {}
    for reading in (r for a in design.answers if a.question.name == "random networks" for r in a.readings):
        readings.setdefault(reading.where, []).append(reading)
    drawn = {where: _as_passed(design, own) for where, own in readings.items()}
    ways = {name: _ways(catalogue.ailment(name), drawn) for name in CLAIMS}
    shown = {
        name: {way: readings[way][name == "inputs-merge"] for way in found} for name, found in ways.items() if found
    }
    return Diagnosis(design.title, worst_first(_finding(design, *one) for one in shown.items()), tuple(CLAIMS))


def _as_passed(design: Design, readings: list[Reading]) -> Subject:
    """A subject whose signals are those of the networks that were drawn."""
    squares, *cosines = (one.series.measured if one.series else (1.0, one.measured) for one in readings)
    unlike = [(1 - cosine) / 2 for cosine in cosines[0]] if cosines else [math.nan] * len(squares)
    layers = tuple(
        LayerSigns(
            name=f"layer {place}",
            kind="Linear",
            units=design.width,
            mean_square=square,
            unlike=apart,
            input_square=square,
            input_unlike=apart,
        )
        for place, (square, apart) in enumerate(zip(squares, unlike, strict=True), 1)
    )
    subject = Subject(nn.Identity(), checked=False)
    subject.seen["signals"] = VitalSigns(layers, math.nan, empty(0))
    return subject


def _ways(ailment: Ailment, drawn: dict[str, Subject]) -> list[str]:
    """The initializations under which it shows, and is sure without a trial where a mere sign costs many trainings nothing."""
    assert ailment.sign is not None
    ways = [where for where, subject in drawn.items() if ailment.sign(subject)]
    return ways if ailment.judge is None else [where for where in ways if any(ailment.judge(drawn[where]))]


def _finding(design: Design, name: str, shown: dict[str, Reading]) -> Finding:
    advised = design.options[0].name
    severity: Severity = "critical" if advised in shown else "warning" if UNASKED in shown else "note"
    said = "; ".join(_words(one) + (f" under {where}" if len(shown) > 1 else "") for where, one in shown.items())
    suggested: dict[str, str] = {}
    if advised in shown:
        remedy = f"fewer than {design.depth} layers, skip connections, or another activation"
    else:
        remedy, suggested = f"th.initialize_(model, {design.activation!r})", {"initialize_": design.activation}
        said += f"; {advised} initialization avoids it in networks of this size"
    return Finding(
        name=name,
        severity=severity,
        where=", ".join(shown),
        says=f"{CLAIMS[name]} under {' and '.join(shown)} initialization: over {design.depth} layers of {design.width} units "
        f"{said}.",
        remedy=remedy,
        suggested=suggested,
        evidence=tuple(shown.values()),
    )


def _words(reading: Reading) -> str:
    if reading.quantity.startswith("variance"):
        way = "falls to" if reading.measured < 1 else "grows to"
        return f"its variance {way} {reading.measured:.2g} of itself"
    start = 1 - reading.series.measured[0] if reading.series is not None else 0.0
    left = (1 - reading.measured) / start if start > 0 else 1.0
    return f"{f'{left:.2g}' if left > 0 else 'nothing'} of their difference is left"
