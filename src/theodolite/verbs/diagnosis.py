"""From numbers to the right sentence: what is wrong, how it is known, and what to type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from theodolite.core.ailment import SEVERITIES, Finding, Severity
from theodolite.core.budget import budget_seconds
from theodolite.core.reading_table import row_of
from theodolite.verbs._presented import Presentable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from theodolite.core.subject import Subject


SEEN = "what the run itself showed"
"""All that was checked where nothing was tried."""


@dataclass(frozen=True)
class Diagnosis(Presentable):
    """The findings of one subject or run, worst first; ``healthy`` if none is worse than a note.

    ``checked`` names the ailments that were checked, ``unchecked`` the others with what they need, or why the check failed;
    ``unfinished`` says that time ran out.
    """

    columns: ClassVar[tuple[str, ...]] = ("name", "severity", "where", "says", "remedy", "suggested", "leads_to")
    kind: ClassVar[str] = "diagnosis"

    subject: str
    findings: tuple[Finding, ...]
    checked: tuple[str, ...] = ()
    unchecked: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    unfinished: bool = False

    @property
    def judged(self) -> bool:
        """Whether anything about how the model learns or answers could be judged, and was judged to the end."""
        return bool(self.checked) and not self.unfinished and not self._blind and "trials" not in self.unchecked

    @property
    def _lacking(self) -> set[str]:
        """What ailments would have needed and nobody passed."""
        reasons = [why.removeprefix("needs ") for why in self.unchecked.values() if why.startswith("needs ")]
        return {need for why in reasons for need in why.split(", ")}

    @property
    def _blind(self) -> bool:
        """Whether a model came without data or a loss, so that nothing about its training was judged."""
        return "loss" in self._lacking and "model" not in self._lacking

    @property
    def healthy(self) -> bool:
        """Something was judged, and nothing was found that is worse than a note."""
        return self.judged and all(finding.severity == "note" for finding in self.findings)

    @property
    def headline(self) -> str:
        """The whole diagnosis in one sentence."""
        bad = [finding for finding in self.findings if finding.severity != "note"]
        if bad:
            worst = bad[0]
            also = f" This also explains {_several(worst.leads_to)}." if worst.leads_to else ""
            return f"{worst.severity.capitalize()}: {worst.says}{also}"
        if not self.checked:
            return "Nothing was checked: pass data and a loss."
        if self.checked == (SEEN,):
            return "No alarm during the run; nothing more was checked."
        if "loss" in self._lacking:
            parts = "weights" if "data" in self._lacking else "weights and inputs"
            todo = "that needs the model, its data and its loss"
            if self._blind and "data" in self._lacking:
                todo = "pass data= with targets and loss= (--data on the command line)"
            elif self._blind:
                todo = "pass loss=, and data= with targets"
            return f"No fault in the {parts} ({len(self.checked)} checks). Training was not checked: {todo}."
        if self.unfinished:
            total = len(self.checked) + len(self.unchecked)
            return f"Not finished: {len(self.checked)} of {total} checks were made; pass a larger budget."
        if "trials" in self.unchecked:
            return (
                f"No fault found in {len(self.checked)} checks; those that need a trial were not made: "
                f"{self.unchecked['trials']}."
            )
        loss, constant = (self.scores.get(name, math.nan) for name in ("training loss", IGNORING))
        if loss >= constant:  # an untrained network: healthy is what it is, but nobody should think that it has learned
            return (
                f"No fault found ({len(self.checked)} checks), but nothing has been learned yet: the training loss is "
                f"{loss:.3g}, and {constant:.3g} when ignoring the input."
            )
        return f"Healthy: no fault found in {len(self.checked)} checks."

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
            "unfinished": self.unfinished,
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
    origin: Any = None,
    steps: int | None = None,
    lr: float | None = None,
    device: str | None = None,
    name: str = "",
    budget: str | float | None = "25s",
) -> Diagnosis:
    """What is wrong with a model, its data or its training, how that is known, and what to change.

    ``target`` is an nn.Module, a Subject, a state dict, or the path of a checkpoint. With an ``optimizer`` (or a learning
    rate ``lr``, for plain gradient descent) fixes are tried on copies of the training before they are suggested;
    ``validation`` is held-out data, ``origin`` the weights before training, ``steps`` how many were made or are
    planned. ``budget`` bounds the work, counted and not timed: the same input gives the same findings on any machine.
    Your model, data and optimizer are not changed.

    >>> import torch, theodolite as th
    >>> model = torch.nn.Linear(3, 2)
    >>> x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    >>> x[7] = float("nan")
    >>> th.diagnose(model, data=(x, torch.arange(40) % 2), loss=torch.nn.functional.cross_entropy).findings[0].name
    'inputs-not-finite'
    """
    from theodolite.core.run import Run
    from theodolite.verbs.subjects import subject_to_judge

    run = None if steps is None else Run(steps=steps)
    subject = subject_to_judge(
        target,
        data=data,
        loss=loss,
        optimizer=optimizer,
        validation=validation,
        origin=origin,
        lr=lr,
        device=device,
        run=run,
    )
    return diagnosis_of(subject, name or subject.name, budget=budget_seconds(budget))


def diagnosis_of(subject: Subject, name: str, *, budget: float = 25.0) -> Diagnosis:
    """Every ailment whose needs are met, judged of one subject."""
    from theodolite import __version__
    from theodolite.verbs.diagnosing import judgement_of

    found = judgement_of(subject, budget=budget)
    return Diagnosis(
        name,
        tuple(found.findings),
        tuple(found.judged),
        found.unjudged,
        _scores(subject),
        {"time": f"{found.seconds:.1f} s", "made with": f"theodolite {__version__}"},
        found.unfinished,
    )


IGNORING = "loss when ignoring the input"


def _scores(subject: Subject) -> dict[str, float]:
    if subject.model is None or not subject.has("loss"):
        return {}
    from theodolite.evidence.constant_answers import constant_loss
    from theodolite.evidence.task import scores

    try:
        training, held = scores(subject)
        constant = constant_loss(subject)
    except Exception:  # a loss that refuses its data: the findings say so
        return {}
    found: dict[str, float] = {}
    for word, score in (("training", training), ("validation", held)):
        if score is not None:
            found |= {
                f"{word} loss": score.loss,
                f"{word} loss error": score.stderr,
                f"{word} accuracy": score.accuracy,
                f"{word} accuracy error": score.accuracy_error if score.accuracy == score.accuracy else math.nan,
                f"{word} samples": float(score.samples),
            }
    found[IGNORING] = constant
    return {name: value for name, value in found.items() if value == value}


def _several(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _flat(value: Any) -> Any:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={member}" for key, member in value.items())
    return ", ".join(value) if isinstance(value, tuple) else value
