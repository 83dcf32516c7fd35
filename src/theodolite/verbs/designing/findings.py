"""What theory and random networks of this size say will go wrong, under the advised and the usual initializations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from theodolite.ailments import signal_explodes, signal_vanishes
from theodolite.core.ailment import SEVERITIES, Finding, Severity
from theodolite.evidence.thresholds import STILL

if TYPE_CHECKING:
    from theodolite.core.reading import Reading
    from theodolite.verbs.designing.advice import Design
    from theodolite.verbs.diagnosis import Diagnosis

CHECKED = ("signal-vanishes", "signal-explodes", "inputs-merge")
UNASKED = "PyTorch default"
"""The initialization that a network has where nobody asked for one."""


def diagnosis_of_design(design: Design) -> Diagnosis:
    """The findings at this depth and width: critical under the advised initialization, a warning under the default one."""
    from theodolite.verbs.diagnosis import Diagnosis

    told: dict[str, list[tuple[str, str, Reading]]] = {}
    for reading in design.answers[0].readings:
        for name, words in _wrong(reading):
            told.setdefault(name, []).append((reading.where, words, reading))
    findings = [_finding(design, name, found) for name, found in told.items()]
    order = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    return Diagnosis(design.title, tuple(order), CHECKED)


CLAIMS = {
    "signal-vanishes": "The signal vanishes",
    "signal-explodes": "The signal explodes",
    "inputs-merge": "Different inputs become the same",
}
"""What each finding says first."""


def _wrong(reading: Reading) -> Iterator[tuple[str, str]]:
    if reading.quantity.startswith("variance"):
        if reading.measured < signal_vanishes.LEAST:
            yield "signal-vanishes", f"its variance falls to {reading.measured:.2g} of itself"
        if reading.measured > signal_explodes.GROWN:
            yield "signal-explodes", f"its variance grows {reading.measured:.2g} times"
    elif reading.series is not None:
        before = 1 - reading.series.measured[0]
        left = (1 - reading.measured) / before if before > 0 else 1.0
        if left < STILL:
            yield "inputs-merge", f"{f'{left:.2g}' if left > 0 else 'nothing'} of their difference is left"


def _finding(design: Design, name: str, found: list[tuple[str, str, Reading]]) -> Finding:
    ways: Mapping[str, str] = {where: words for where, words, _ in found}
    advised = design.options[0].name
    severity: Severity = "critical" if advised in ways else "warning" if UNASKED in ways else "note"
    told = [words + (f" under {where}" if len(ways) > 1 else "") for where, words in ways.items()]
    said = "; ".join(told)
    suggested: dict[str, str] = {}
    if advised in ways:
        remedy = f"fewer than {design.depth} layers, skip connections, or another activation"
    else:
        remedy, suggested = f"th.initialize_(model, {design.activation!r})", {"initialize_": design.activation}
        said += f"; {advised} initialization avoids it in networks of this size"
    return Finding(
        name=name,
        severity=severity,
        where=", ".join(ways),
        says=f"{CLAIMS[name]} under {' and '.join(ways)} initialization: over {design.depth} layers of {design.width} units "
        f"{said}.",
        remedy=remedy,
        suggested=suggested,
        evidence=tuple(reading for _, _, reading in found),
    )
