"""Every ailment judged from one chart."""

from __future__ import annotations

from dataclasses import replace

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
    found = [
        replace(finding, name=ailment.name)
        for ailment in all_ailments()
        if all(chart.has(need) for need in ailment.needs)
        for finding in ailment.judge(chart)
    ]
    return in_order(found, {ailment.name: (*ailment.explains, *_fallback(ailment)) for ailment in all_ailments()})


def _fallback(ailment: Ailment) -> tuple[str, ...]:
    return () if ailment.name == FALLBACK or FALLBACK in ailment.explains else (FALLBACK,)
