"""What is wrong with a network or its training: every ailment judged from one chart."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache

from theodolite import ailments
from theodolite.ailments._chart import Chart
from theodolite.core.ailment import Ailment, Finding, in_order


@cache
def all_ailments() -> tuple[Ailment, ...]:
    """Every ailment, by its file; hyphens for underscores in its name."""
    names = sorted(m.name for m in pkgutil.iter_modules(ailments.__path__) if not m.name.startswith("_"))
    found = [(name, importlib.import_module(f"{ailments.__name__}.{name}").ailment) for name in names]
    return tuple(replace(ailment, name=name.replace("_", "-")) for name, ailment in found)


def findings_of(chart: Chart) -> tuple[Finding, ...]:
    """The findings of all ailments whose needs the chart meets, worst first, consequences within their causes."""
    found = [
        replace(finding, name=ailment.name)
        for ailment in all_ailments()
        if all(chart.has(need) for need in ailment.needs)
        for finding in ailment.judge(chart)
    ]
    return in_order(found, {ailment.name: ailment.explains for ailment in all_ailments()})
