"""An ailment: a way in which networks fail. Judged from a subject, it ends in findings; all findings are a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from theodolite.core.checks import InputError, one_of
from theodolite.core.question import Need
from theodolite.core.reading import Reading

if TYPE_CHECKING:
    from theodolite.core.run import Run
    from theodolite.core.subject import Subject

Severity = Literal["critical", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong (``says``), where, how to fix it (``remedy``), the same for programs (``suggested``), and the evidence.

    ``critical``: no better than ignoring the input, or most of what could be learned is lost; ``warning``: it costs
    accuracy or time; ``note``: worth knowing. ``leads_to`` names the other symptoms that disappear in the copy with the
    fix. ``precision`` is how often such a finding was right on runs whose fault was known, if that was counted.
    """

    severity: Severity
    says: str
    remedy: str
    name: str = ""
    where: str = ""
    suggested: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Reading, ...] = ()
    leads_to: tuple[str, ...] = ()
    precision: str = ""

    def __post_init__(self) -> None:
        one_of(SEVERITIES, severity=self.severity)


def evidence(quantity: str, measured: float, *, stderr: float = 0.0, where: str = "", meaning: str = "") -> Reading:
    """A number that a finding rests on."""
    return Reading(quantity=quantity, measured=measured, stderr=stderr, where=where, meaning=meaning)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in the order in which people should read them; of equal severity those that explain most come first."""
    return tuple(sorted(findings, key=lambda found: (SEVERITIES.index(found.severity), -len(found.leads_to))))


@dataclass(frozen=True, kw_only=True)
class Ailment:
    """A way to fail. ``judge(subject)`` yields findings from exact facts and statistics, if its ``needs`` are met.

    ``interventions(subject)`` yields what could be changed in the training to fix it; the diagnosis tries them on copies
    together with those of all other ailments, and the best one gives the finding. ``sign(subject)`` says whether a
    network shows its symptom, also for a copy with a fix. ``while_training(run)`` recognizes it in the looks of a run,
    with the same thresholds. ``laws`` are those behind its thresholds. ``exact``: what it judges is a fact that is an error by
    itself, whatever the loss does; of equal severity such a fact is told before what was measured or tried.
    """

    question: str
    needs: AbstractSet[Need]
    judge: Callable[[Subject], Iterable[Finding]] | None = None
    interventions: Callable[[Subject], Iterable[Any]] | None = None
    sign: Callable[[Subject], bool] | None = None
    while_training: Callable[[Run], Iterable[Finding]] | None = None
    laws: tuple[str, ...] = ()
    exact: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        unknown = set(self.needs) - set(get_args(Need))
        if unknown:
            raise InputError(
                f"expected needs among {get_args(Need)}, got {sorted(unknown)}; correct the ailment's file"
            )


def silent_error(
    *,
    question: str,
    fact: str,
    severity: Severity,
    says: str,
    remedy: str = "",
    suggested: Mapping[str, Any] | None = None,
    needs: AbstractSet[Need] = frozenset({"run"}),
    static: Callable[[Subject], tuple[str, ...]] | None = None,
    live: bool = True,
) -> Ailment:
    """The ailment of an exact fact of a training's steps that is an error by itself, whatever the loss does.

    ``fact`` is its name among those of a run (`Run.silent`), whose words ``says`` may name as ``{0}``, ``{1}``, ... or as
    ``{all}``; the last of them is the remedy where none is given. ``static(subject)`` are the same words, where the fact can be
    seen without a run. A fact that is not ``live`` is one at the end of a run only.
    """

    def found(words: tuple[str, ...]) -> Iterable[Finding]:
        if words:
            said, where = says.format(*words, all=few_of(words)), words[0] if "{all}" in says else ""  # else counts
            yield Finding(
                severity=severity, where=where, says=said, remedy=remedy or words[-1], suggested=suggested or {}
            )

    def while_training(run: Run) -> Iterable[Finding]:
        return found(run.silent.get(fact, ()))

    def judge(subject: Subject) -> Iterable[Finding]:
        words = () if subject.run is None else subject.run.silent.get(fact, ())
        return found(words or (static(subject) if static is not None else ()))

    return Ailment(
        question=question, needs=needs, judge=judge, while_training=while_training if live else None, exact=True
    )


def few_of(names: Sequence[str], most: int = 4) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def figure(value: float, digits: int = 3) -> str:
    """A number in a sentence, as people write it.

    >>> figure(68213.0), figure(0.81934), figure(-1286.0), figure(1.3e12)
    ('68,200', '0.819', '-1,290', '1.3e+12')
    """
    short = f"{value:.{digits}g}"
    return f"{float(short):,.0f}" if "e+" in short and abs(value) < 1e9 else short


def times(factor: float) -> str:
    """A factor, with two digits.

    >>> times(1.13e5), times(2.345), times(1.3e12)
    ('110,000', '2.3', '1.3e+12')
    """
    return figure(factor, 2)
