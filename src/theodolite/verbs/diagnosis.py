"""From numbers to the right sentence: what is wrong, how it is known, and what to type."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from theodolite.core.ailment import SEVERITIES, Finding, Severity
from theodolite.core.reading_table import row_of
from theodolite.verbs._shown import Shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from theodolite.ailments._common.chart import Chart


@dataclass(frozen=True)
class Diagnosis(Shown):
    """The findings of one subject or run, worst first; ``healthy`` where none is worse than a note.

    ``checked`` names the ailments that were looked for, ``unchecked`` the others with what would be needed to look for them.
    """

    columns: ClassVar[tuple[str, ...]] = ("name", "severity", "where", "says", "remedy", "suggested", "leads_to")
    kind: ClassVar[str] = "diagnosis"

    subject: str
    findings: tuple[Finding, ...]
    checked: tuple[str, ...] = ()
    unchecked: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Nothing was found that is worse than a note."""
        return all(finding.severity == "note" for finding in self.findings)

    @property
    def headline(self) -> str:
        """The whole diagnosis in one sentence."""
        if not self.healthy:
            worst = self.findings[0]
            also = f" It explains {_several(worst.leads_to)} too." if worst.leads_to else ""
            return f"{worst.severity.capitalize()}: {worst.says}{also}"
        if not self.checked:
            return "Nothing could be looked for: pass data and a loss."
        loss, constant = (
            self.scores.get(name, math.nan) for name in ("training loss", "loss of the best constant answer")
        )
        if loss >= constant:  # an untrained network: healthy is what it is, but nobody should think that it has learnt
            return (
                f"Nothing learnt yet, and no fault found: the training loss {loss:.3g} is not below the {constant:.3g} of an "
                f"answer that ignores its input; {len(self.checked)} ways to fail were looked for."
            )
        return f"Healthy: {len(self.checked)} ways to fail were looked for and none was found."

    def meets(self, level: Severity) -> bool:
        """Whether some finding is as bad as that, or worse."""
        return any(SEVERITIES.index(finding.severity) <= SEVERITIES.index(level) for finding in self.findings)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a finding."""
        return [{name: _flat(getattr(finding, name)) for name in self.columns} for finding in self.findings]

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        return {
            "subject": self.subject,
            "healthy": self.healthy,
            "headline": self.headline,
            "findings": [
                {**asdict(finding), "evidence": [row_of(reading) for reading in finding.evidence]}
                for finding in self.findings
            ],
            "scores": dict(self.scores),
            "checked": list(self.checked),
            "unchecked": dict(self.unchecked),
            "facts": dict(self.facts),
        }

    def table(self) -> RenderableType:
        """For the terminal."""
        from theodolite.report.diagnosis import diagnosis_text

        return diagnosis_text(self)

    def page(self) -> str:
        """One HTML document that needs nothing beside it."""
        from theodolite.report.diagnosis import diagnosis_page

        return diagnosis_page(self)

    def _repr_html_(self) -> str:
        from theodolite.report.diagnosis import diagnosis_fragment

        return diagnosis_fragment(self)


def diagnose(
    target: Any = None,
    *,
    data: Any = None,
    loss: Callable[[Any, Any], Any] | None = None,
    optimizer: Any = None,
    validation: Any = None,
    budget: str | float = "25s",
    **more: Any,
) -> Diagnosis:
    """What is wrong with a model, its data or its training, how that is known, and what to type.

    ``target`` is an nn.Module, a Subject, or the path of a checkpoint. With an ``optimizer`` remedies are tried out on copies
    before they are given; ``validation`` is held-out data. ``more``: ``origin`` (weights before training), ``steps`` (how many
    were planned or made), ``name``. Nothing of the user's is changed.

    >>> import torch, theodolite as th
    >>> model = torch.nn.Linear(3, 2)
    >>> x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    >>> x[7] = float("nan")
    >>> th.diagnose(model, data=(x, torch.zeros(40).long()), loss=torch.nn.functional.cross_entropy).findings[0].name
    'inputs-not-finite'
    """
    from theodolite.verbs._charts import chart_of

    name = str(more.pop("name", ""))
    chart, called = chart_of(
        target, data=data, loss=loss, optimizer=optimizer, validation=validation, budget=seconds_of(budget), **more
    )
    return diagnosis_of(chart, name or called)


def diagnosis_of(chart: Chart, name: str) -> Diagnosis:
    """Every ailment whose needs are met, judged from one chart."""
    from theodolite import __version__, catalogue
    from theodolite.verbs.diagnosing import findings_of, missing_for

    started = time.perf_counter()
    findings = findings_of(chart)
    missing = {name: missing_for(name, chart) for name in catalogue.ailment_names()}
    seconds = time.perf_counter() - started
    return Diagnosis(
        name,
        findings,
        tuple(ailment for ailment, needs in missing.items() if not needs),
        {ailment: f"needs {', '.join(needs)}" for ailment, needs in missing.items() if needs},
        _scores(chart),
        {"time": f"{seconds:.1f} s", "made with": f"theodolite {__version__}"},
    )


def seconds_of(budget: str | float | None) -> float:
    """A time as people write it, in seconds: ``"60s"``, ``"2m"``, ``45`` or None for no limit.

    >>> seconds_of("2m"), seconds_of("45s"), seconds_of(7)
    (120.0, 45.0, 7.0)
    """
    if budget is None:
        return math.inf
    text = str(budget).strip().lower()
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
    try:
        value = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise ValueError(f"expected a time such as 60s or 2m, got {budget!r}; pass a positive one")
    return value


def _scores(chart: Chart) -> dict[str, float]:
    fit = chart.fit
    if fit is None:
        return {}
    found = {"training loss": fit.training.loss, "training accuracy": fit.training.accuracy}
    if fit.validation is not None:
        found |= {"validation loss": fit.validation.loss, "validation accuracy": fit.validation.accuracy}
    found["loss of the best constant answer"] = chart.chance
    return {name: value for name, value in found.items() if value == value}


def _several(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _flat(value: Any) -> Any:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={member}" for key, member in value.items())
    return ", ".join(value) if isinstance(value, tuple) else value
