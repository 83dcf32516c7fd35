"""An ailment: a way in which networks fail. Judged from a chart, it ends in findings; all findings are a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from theodolite.core.reading import Reading

Severity = Literal["critical", "warning", "note"]
Need = Literal["weights", "model", "data", "loss", "optimizer", "validation", "origin", "history"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong (``says``), where, what to type (``remedy``), the same for programs (``suggested``), and the evidence.

    ``critical``: it will not train, or its answers are wrong; ``warning``: it costs accuracy or time; ``note``: worth
    knowing. ``because_of`` names the finding that explains this one, ``leads_to`` those that this one explains.
    ``rightness`` is how often such a finding was right in the clinic, where that is known.
    """

    severity: Severity
    says: str
    remedy: str
    name: str = ""
    where: str = ""
    suggested: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Reading, ...] = ()
    leads_to: tuple[str, ...] = ()
    rightness: str = ""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"expected a severity among {SEVERITIES}, got {self.severity!r}; mend the ailment's file")


@dataclass(frozen=True, kw_only=True)
class Ailment:
    """``judge(chart)`` yields findings from the ``signs`` it names (properties of the chart), where its ``needs`` are met.

    ``explains`` names the ailments that follow from this one: where both are found, this one is the cause and is shown first.
    ``examples`` maps words to functions of a seed that return the keywords of `diagnose`: under ``"sick"`` networks that have
    it, under ``"healthy"`` networks that look alike and have not. ``laws`` are those that its thresholds rest on.
    """

    question: str
    needs: AbstractSet[Need]
    signs: tuple[str, ...]
    judge: Callable[[Any], Iterable[Finding]]
    examples: Mapping[str, tuple[Callable[[int], Mapping[str, Any]], ...]]
    explains: tuple[str, ...] = ()
    laws: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        unknown = set(self.needs) - set(get_args(Need))
        if unknown:
            raise ValueError(f"expected needs among {get_args(Need)}, got {sorted(unknown)}; mend the ailment's file")


def in_order(findings: Iterable[Finding], explains: Mapping[str, tuple[str, ...]]) -> tuple[Finding, ...]:
    """Worst first; a cause takes the rank of the worst that it explains, and those are named in it and left out."""
    found = {finding.name: finding for finding in findings}
    bad = [name for name, finding in found.items() if finding.severity != "note"]  # what is only noted explains nothing
    reached = {name: _reached(name, explains) & found.keys() - {name} if name in bad else set() for name in found}
    rank = {name: place for place, name in enumerate(sorted(found, key=lambda n: SEVERITIES.index(found[n].severity)))}
    hidden = {
        name  # of two that explain each other the worse is the cause
        for cause, followers in reached.items()
        for name in followers
        if cause not in reached[name] or rank[cause] < rank[name]
    }
    causes = [name for name in found if name not in hidden]
    shown = []
    for name in causes:
        whole = [found[name], *(found[other] for other in sorted(reached[name]))]
        worst = min((finding.severity for finding in whole), key=SEVERITIES.index)
        shown.append(replace(found[name], severity=worst, leads_to=tuple(sorted(reached[name]))))
    return tuple(sorted(shown, key=lambda finding: (SEVERITIES.index(finding.severity), -len(finding.leads_to))))


def _reached(name: str, explains: Mapping[str, tuple[str, ...]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(explains.get(name, ()))
    while waiting:
        follower = waiting.pop()
        if follower not in seen:
            seen.add(follower)
            waiting += explains.get(follower, ())
    return seen
