"""A diagnosis for the terminal, as a page, and as the part of other pages that is read first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theodolite.report.rendering import rendered
from theodolite.report.words import number, plain, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

MARKS: Mapping[str, str] = {"critical": "✖", "warning": "▲", "note": "○", "healthy": "✓"}
STYLES: Mapping[str, str] = {"critical": "bold red", "warning": "yellow", "note": "dim", "healthy": "green"}
LONGEST = 90
"""Letters of a headline; what a finding says first may be longer, and its name is then taken."""
SHOWN = 3
"""How many findings the terminal shows in full; the others are named."""


def diagnosis_text(diagnosis: Any) -> RenderableType:
    """The headline, up to three findings with what to type, and how the network does."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    state = "healthy" if diagnosis.healthy else diagnosis.findings[0].severity
    parts: list[RenderableType] = [
        Text.assemble((f"{MARKS[state]} ", STYLES[state]), (printable(_title(diagnosis)), "bold"))
    ]
    if diagnosis.scores:
        parts.append(Text(_score_words(diagnosis.scores)))
    if diagnosis.healthy and diagnosis.checked:
        parts.append(Text(_why(diagnosis), style="dim"))
    for finding in diagnosis.findings[:SHOWN]:
        place = f" at {place_words(finding.where)}" if finding.where else ""
        parts += [
            Text(""),
            Text.assemble(
                (f"{MARKS[finding.severity]} {finding.severity}: ", STYLES[finding.severity]),
                (printable(finding.name + place), "bold"),
            ),
            *(Padding(line, (0, 0, 0, 2)) for line in _lines(finding)),
        ]
    rest = diagnosis.findings[SHOWN:]
    if rest:
        parts += [Text(""), Text(f"and {len(rest)} more: {', '.join(finding.name for finding in rest)}", style="dim")]
    return Group(*parts)


def place_words(where: str) -> str:
    """A place as it is said: a layer whose name is a number is called a layer.

    >>> place_words("40"), place_words("layer2.0.conv1")
    ('layer 40', 'layer2.0.conv1')
    """
    return f"layer {where}" if where[:1].isdigit() and " " not in where else where


def _lines(finding: Any) -> Iterator[Text]:
    """What a finding says, what to type, and what is known of such findings."""
    from rich.text import Text

    yield Text(printable(finding.says))
    yield Text.assemble(f"{remedy_verb(finding.remedy)}: ", (printable(finding.remedy), "bold"))
    if finding.leads_to:
        yield Text(f"it explains {', '.join(finding.leads_to)}", style="dim")
    if finding.rightness:
        yield Text(finding.rightness, style="dim")


def diagnosis_page(diagnosis: Any) -> str:
    """One HTML document."""
    return rendered("diagnosis.html.j2", title=f"Diagnosis of {diagnosis.subject}", **views(diagnosis))


def diagnosis_fragment(diagnosis: Any) -> str:
    """The same as an element for a notebook's cell."""
    return rendered("diagnosis_fragment.html.j2", title=diagnosis.subject, **views(diagnosis))


def views(diagnosis: Any) -> dict[str, Any]:
    """What the templates show of a diagnosis."""
    return {
        "verdict": _title(diagnosis),
        "state": "healthy" if diagnosis.healthy else diagnosis.findings[0].severity,
        "marks": MARKS,
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "scores": [(name, _score(name, value)) for name, value in diagnosis.scores.items()],
        "checked": diagnosis.checked,
        "unchecked": diagnosis.unchecked,
        "facts": diagnosis.facts,
    }


def _finding(finding: Any) -> dict[str, Any]:
    evidence = [
        (reading.quantity, reading.where, number(reading.measured, reading.stderr)) for reading in finding.evidence
    ]
    return {"finding": finding, "evidence": evidence, "verb": remedy_verb(finding.remedy)}


def remedy_verb(remedy: str) -> str:
    """Whether a remedy is to be typed, as code is, or to be done.

    >>> remedy_verb("lr=0.1"), remedy_verb("a path around every layer")
    ('type', 'do')
    """
    try:
        ast.parse(remedy)
    except (SyntaxError, ValueError):
        return "do"
    return "type"


def clause(finding: Any) -> str:
    """What a finding says first, up to its reasons; its name in words where that is long.

    >>> from theodolite.core.ailment import Finding
    >>> clause(Finding(name="step-too-large", severity="critical", says="The step of 6 is too large: so it is.", remedy="lr=1"))
    'the step of 6 is too large'
    """
    said = re.split(r"[:;.](?: |$)", finding.says)[0]
    if not said or len(said) > LONGEST:
        return str(finding.name.replace("-", " "))
    first = said.split()[0]
    return said[0].lower() + said[1:] if first.isalpha() and first[1:].islower() and first != finding.where else said


def _title(diagnosis: Any) -> str:
    """The first sentence: of a sick network what the worst finding says first; its reasons stand below."""
    if diagnosis.healthy:
        return str(diagnosis.headline)
    worst = diagnosis.findings[0]
    more = len(diagnosis.findings) - 1
    also = f", and {more} more {'finding' if more == 1 else 'findings'}" if more else ""
    return f"{worst.severity.capitalize()}: {clause(worst)}{also}."


def _why(diagnosis: Any) -> str:
    listed: Sequence[str] = diagnosis.checked
    return f"Looked for: {', '.join(listed[:8])}" + (f" and {len(listed) - 8} more." if len(listed) > 8 else ".")


def _score_words(scores: Mapping[str, float]) -> str:
    return "; ".join(f"{name} {_score(name, value)}" for name, value in scores.items())


def _score(name: str, value: float) -> str:
    return f"{value:.1%}" if "accuracy" in name else plain(value, digits=3)
