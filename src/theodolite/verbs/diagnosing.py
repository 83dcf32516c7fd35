"""Every ailment judged from one chart."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources

from theodolite import catalogue
from theodolite.ailments._common.chart import Chart
from theodolite.core.ailment import Ailment, Finding, in_order

FALLBACK = "loss-stalls"
"""What is said where nothing else explains a run: whatever is found explains it."""


def all_ailments() -> tuple[Ailment, ...]:
    """Every ailment, by the order of their names."""
    return tuple(catalogue.ailment(name) for name in catalogue.ailment_names())


def findings_of(chart: Chart) -> tuple[Finding, ...]:
    """The findings of all ailments whose needs the chart meets, worst first, consequences within their causes."""
    names = catalogue.ailment_names()
    found = [
        replace(finding, name=name)
        for name in sorted(names, key=_dearness)
        if not missing_for(name, chart)
        for finding in catalogue.ailment(name).judge(chart)
    ]
    found.sort(key=lambda finding: finding.name)
    shown = in_order(found, {name: (*catalogue.ailment_facts(name)["explains"], *_fallback(name)) for name in names})
    return tuple(replace(finding, rightness=rightness(finding)) for finding in shown)


def missing_for(name: str, chart: Chart) -> list[str]:
    """What the ailment of that name needs and the chart has not."""
    return sorted(need for need in catalogue.ailment_facts(name)["needs"] if not chart.has(need))


def _dearness(name: str) -> tuple[bool, bool, str]:
    """What costs little comes first, and of trials those of the step: where time runs out, the rarest are left."""
    return "trial" in catalogue.ailment_facts(name)["signs"], not name.startswith("step-"), name


def rightness(finding: Finding) -> str:
    """How often such an alarm was right in the clinic, in words; nothing of a note, nor where none was raised there."""
    right, raised = clinic_counts().get(finding.name, (0, 0))
    times = "time" if raised == 1 else "times"
    return (
        f"right {right} of {raised} {times} in test runs whose fault was known"
        if raised and finding.severity != "note"
        else ""
    )


@functools.cache
def clinic_counts() -> Mapping[str, tuple[int, int]]:
    """Of each ailment how often its alarm was right and how often it was raised, on runs that no threshold was chosen on."""
    file = resources.files("theodolite.ailments._common") / "clinic.json"
    return {name: (right, raised) for name, (right, raised) in json.loads(file.read_text()).items()}


def _fallback(name: str) -> tuple[str, ...]:
    return () if name == FALLBACK or FALLBACK in catalogue.ailment_facts(name)["explains"] else (FALLBACK,)
