"""A diagnosis for the terminal, as a page, and as the part of other pages that is read first."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theodolite.report.words import number, plain, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

MARKS: Mapping[str, str] = {"critical": "✖", "warning": "▲", "note": "○", "healthy": "✓", "unjudged": "–"}
STYLES: Mapping[str, str] = {
    "critical": "bold red",
    "warning": "yellow",
    "note": "dim",
    "healthy": "green",
    "unjudged": "dim",
}
LONGEST = 90
"""Letters of a headline; what a finding says first may be longer, and its name is then taken."""
SHOWN = 3
"""How many findings the terminal shows in full; the others are named."""


def diagnosis_text(diagnosis: Any) -> RenderableType:
    """The headline, up to three findings with what to type, and how the network does."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    state = state_of(diagnosis)
    parts: list[RenderableType] = [
        Text.assemble((f"{MARKS[state]} ", STYLES[state]), (printable(_title(diagnosis)), "bold"))
    ]
    if diagnosis.scores:
        parts.append(Text("; ".join(score_lines(diagnosis.scores))))
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
    failed = {name: why for name, why in diagnosis.unchecked.items() if not why.startswith("needs ")}
    parts += [Text(""), *(Text(f"{name}: {why}", style="dim") for name, why in failed.items())] if failed else []
    return Group(*parts)


def state_of(diagnosis: Any) -> str:
    """The severity of the worst finding, ``healthy``, or ``unjudged`` where too little was judged to say so."""
    worst = diagnosis.findings[0].severity if diagnosis.findings else "note"
    return str(worst) if worst != "note" else "healthy" if diagnosis.healthy else "unjudged"


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
    yield Text.assemble("fix: ", (printable(finding.remedy), "bold"))
    if finding.leads_to:
        yield Text(f"it explains {', '.join(finding.leads_to)}", style="dim")
    if finding.precision:
        yield Text(finding.precision, style="dim")


def diagnosis_page(diagnosis: Any) -> str:
    """One HTML document."""
    from theodolite.report.rendering import rendered

    return rendered("diagnosis.html.j2", title=f"Diagnosis of {diagnosis.subject}", **views(diagnosis))


def diagnosis_fragment(diagnosis: Any) -> str:
    """The same as an element for a notebook's cell."""
    from theodolite.report.rendering import rendered

    return rendered("diagnosis_fragment.html.j2", title=diagnosis.subject, **views(diagnosis))


def views(diagnosis: Any) -> dict[str, Any]:
    """What the templates show of a diagnosis."""
    return {
        "verdict": _title(diagnosis),
        "state": state_of(diagnosis),
        "marks": MARKS,
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "scores": [line.split(": ", 1) for line in score_lines(diagnosis.scores)],
        "checked": diagnosis.checked,
        "unchecked": diagnosis.unchecked,
        "facts": diagnosis.facts,
    }


def _finding(finding: Any) -> dict[str, Any]:
    evidence = [
        (reading.quantity, reading.where, number(reading.measured, reading.stderr)) for reading in finding.evidence
    ]
    return {"finding": finding, "evidence": evidence, "code": is_code(finding.remedy)}


def is_code(remedy: str) -> bool:
    """Whether a remedy is Python.

    >>> is_code("lr=0.1"), is_code("a path around every layer")
    (True, False)
    """
    try:
        ast.parse(remedy)
    except (SyntaxError, ValueError):
        return False
    return True


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
    return (
        said[0].lower() + said[1:]
        if first.isalpha() and first[1:] == first[1:].lower() and first != finding.where
        else said
    )


def _title(diagnosis: Any) -> str:
    """The first sentence: of a sick network what the worst finding says first; its reasons stand below."""
    if state_of(diagnosis) in ("healthy", "unjudged"):
        return str(diagnosis.headline)
    worst = diagnosis.findings[0]
    more = len(diagnosis.findings) - 1
    also = f", and {more} more {'finding' if more == 1 else 'findings'}" if more else ""
    return f"{worst.severity.capitalize()}: {clause(worst)}{also}."


def _why(diagnosis: Any) -> str:
    listed: Sequence[str] = diagnosis.checked
    return f"Checked: {', '.join(listed[:8])}" + (f" and {len(listed) - 8} more." if len(listed) > 8 else ".")


def score_lines(scores: Mapping[str, float]) -> list[str]:
    """How well the network does, each line with its number of samples.

    >>> scores = {"training loss": 0.5, "training loss error": 0.02, "training accuracy": 0.9, "training accuracy error": 0.008}
    >>> score_lines({**scores, "training samples": 1400.0, "loss when ignoring it": 2.3})
    ['training: loss 0.500 ± 0.020, accuracy 90.0 ± 0.8 % (1,400 samples)', 'loss when ignoring it: 2.3']
    """
    lines, rest = [], dict(scores)
    for word in ("training", "validation"):
        loss, accuracy, samples = (rest.pop(f"{word} {kind}", None) for kind in ("loss", "accuracy", "samples"))
        error, wrong = (rest.pop(f"{word} {kind} error", 0.0) for kind in ("loss", "accuracy"))
        if loss is not None:
            height = number(loss, error) if 0 < error < math.inf else plain(loss, digits=3)
            right = "" if accuracy is None else f", accuracy {_share(accuracy, wrong)}"
            count = "" if samples is None else f" ({samples:,.0f} samples)"
            lines.append(f"{word}: loss {height}{right}{count}")
    return lines + [f"{name}: {plain(value, digits=3)}" for name, value in rest.items()]


def _share(value: float, error: float) -> str:
    """A share in percent with its error, and no more digits than that allows."""
    digits = 0 if error >= 0.01 else 1
    return f"{100 * value:.{digits}f} ± {100 * error:.{digits}f} %" if error > 0 else f"{100 * value:.1f} %"
