"""Pages of ailments and instruments, their lists, and the errata of the literature."""

from __future__ import annotations

import html
import importlib
import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.pages import Page, words_of
from theodolite import catalogue
from theodolite.core.ailment import Finding
from theodolite.core.reading import Reading
from theodolite.report.diagnosis import MARKS, is_code
from theodolite.report.formulas import formula, prose
from theodolite.report.text import COSTS
from theodolite.report.unicode_math import unicode_prose
from theodolite.report.views import Row, reading_row
from theodolite.verbs.diagnosing import counted_findings

CLINIC = Path(__file__).resolve().parent.parent / "clinic.md"


BUDGET = "12s"
"""Of the survey whose readings the pages of instruments show."""


def ailment_pages(findings: Mapping[str, str]) -> list[Page]:
    """What each asks and says, is judged by and rests on, and how often it was right; ``findings`` are `sick_findings`."""
    about = "What can be wrong with a model. <code>theodolite diagnose</code> and <code>th.diagnose</code> check for all of it."
    found = _entries("ailment")
    rows = [(_own(e.name), prose(catalogue.ailment(e.name).question), _short_figures(e.name)) for e in found]
    body = f"<h1>Findings</h1><p>{about}</p>" + _table(("finding", "asks", "found"), rows)
    body += (
        '<p class="th-small th-soft">The <a href="../clinic.html">clinic</a> trains networks whose fault is known, because it '
        "was put there; the last column says in how many of them it was found.</p>"
    )
    home = Page("ailments/index.html", "Findings", body, "What can be wrong with a model", "list")
    return [home, *(_entry_page(e, _ailment(e, findings.get(e.name, ""))) for e in found)]


def instrument_pages(readings: Mapping[str, str]) -> list[Page]:
    """What each asks, needs, costs, rests on and says of the built-in network; ``readings`` are `builtin_readings`."""
    about = "What can be measured. <code>theodolite survey</code> and <code>th.survey</code> use every instrument that applies."
    found = _entries("instrument")
    rows = [
        (_own(e.name), prose(catalogue.instrument(e.name).question), _needs(catalogue.instrument(e.name).needs))
        for e in found
    ]
    body = f"<h1>Instruments</h1><p>{about}</p>" + _table(("instrument", "asks", "needs"), rows)
    home = Page("instruments/index.html", "Instruments", body, "What can be measured", "list")
    return [home, *(_entry_page(e, _instrument(e, readings.get(e.name, ""))) for e in found)]


def examples() -> dict[str, Any]:
    """The tests of ailments whose networks are shown; benchmarks lie beside them, and some share theirs."""
    root = Path(__file__).parents[2]
    sys.path[:0] = [str(root / "tests"), str(root)]
    names = [name for name in catalogue.ailment_names() if "fact" not in catalogue.ailment_facts(name)]
    return {name: importlib.import_module(f"ailments.test_{name.replace('-', '_')}") for name in names}


def sick_findings() -> dict[str, str]:
    """What each ailment says of the first sick network of its tests, made now; of errors of a run their sentence."""
    shown = examples()
    from fixtures.judging import alarms

    logging.getLogger("theodolite").addHandler(logging.NullHandler())  # their runs are sick on purpose

    found = {}
    for name in catalogue.ailment_names():
        facts = catalogue.ailment_facts(name)
        if "fact" in facts:
            says = re.sub(r"\{\w+\}", "…", facts["says"])
            sentence = Finding(severity=facts["severity"], says=says, remedy=facts.get("remedy", "…"))
            found[name] = finding_article(sentence, "What it says")
            continue
        judged = alarms(name, shown[name].SICK[0](0))
        if judged:
            found[name] = finding_article(judged[0], "For example")
    return found


def _judged_by(ailment: Any) -> str:
    """The ways in which an ailment is judged, for a reader."""
    ways = {
        "exact facts and statistics": ailment.judge,
        "training on a copy with one thing changed": ailment.interventions,
        "measurements during training": ailment.while_training,
    }
    return "; ".join(words for words, way in ways.items() if way is not None)


def builtin_readings() -> dict[str, str]:
    """What each instrument says of the network that comes with the package, or of a small model of sequences, made now."""
    import theodolite as th
    from theodolite.io.builtin_network import builtin

    answers = th.survey(builtin(), budget=BUDGET).answers
    found = {answer.question.name: _readings(answer.readings, "the built-in network") for answer in answers}
    model, data, loss = sequence_model()
    for name in ("attention", "embedding", "residual-stream", "token-loss"):
        found[name] = _readings(th.read(name, model, data=data, loss=loss), "a small model of sequences")
    return found


def sequence_model() -> tuple[Any, Any, Any]:
    """A model that learns to continue sorted sequences, trained for a while, its data and its loss."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    rows = torch.randint(0, 24, (400, 17)).sort(1).values
    x, y = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    class Sorted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(32, 2, 64, 0.0, batch_first=True, norm_first=True)
            self.embed, self.head = nn.Embedding(24, 32), nn.Linear(32, 24)
            self.blocks = nn.TransformerEncoder(layer, 2, nn.LayerNorm(32), enable_nested_tensor=False)

        def forward(self, tokens: Any) -> Any:
            causal = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
            return self.head(self.blocks(self.embed(tokens), mask=causal, is_causal=True))

    model = Sorted()

    def loss(answer: Any, target: Any) -> Any:
        return nn.functional.cross_entropy(answer.flatten(0, 1), target.flatten())

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(100):
        some = torch.randint(0, 400, (32,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        loss(model(x[some]), y[some]).backward()
        optimizer.step()
    return model, (x, y), loss


def _readings(readings: Sequence[Reading], of: str) -> str:
    """A few of the readings as a table, under a heading; nothing where there are none."""
    rows = [reading_row(reading, "") for reading in readings]
    cells = [
        (
            html.escape(row.quantity),
            html.escape(row.where),
            f'<span class="th-nowrap">{html.escape(row.value)}</span>',
            f'<span class="th-nowrap">{html.escape(row.expected)}</span>',
            html.escape(f"{row.mark} {row.status}"),
        )
        for row in rows[:FEW]
    ]
    more = f"<p>and {len(rows) - FEW} more</p>" if len(rows) > FEW else ""
    table = _table(("quantity", "where", "measured", "expected", "status"), cells)
    return f"<h2>What it says of {of}</h2>{_first_meaning(rows)}{table}{more}" * bool(rows)


FEW = 8
"""Readings of an instrument that its page shows."""


def _first_meaning(rows: Sequence[Row]) -> str:
    """What the first reading with a band means, and of which it is said."""
    told = [row for row in rows if row.meaning]
    row = next((row for row in told if row.expects), told[0] if told else None)
    if row is None:
        return ""
    place = f" ({html.escape(row.where)})" if row.where else ""
    return f"<p><b>{html.escape(row.quantity)}</b>{place}: {html.escape(row.meaning)}</p>"


def _entries(kind: str) -> list[catalogue.CatalogueEntry]:
    return [entry for entry in catalogue.entries() if entry.kind == kind]


def _entry_page(entry: catalogue.CatalogueEntry, body: str) -> Page:
    return Page(
        f"{entry.kind}s/{entry.name}.html", entry.name, body, words_of(unicode_prose(entry.summary)), entry.kind
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _own(name: str) -> str:
    """A link from a list to the page beside it."""
    return f'<a class="th-nowrap" href="{name}.html">{name}</a>'


def _needs(needs: Iterable[str]) -> str:
    return ", ".join(sorted(needs)) or "nothing"


def errata_page() -> Page:
    """Every statement of the literature that a law refutes, with what is right."""
    parts = [
        "<h1>Errata of the literature</h1><p>Where a statement in print, in the lecture notes or on slides was wrong, the "
        "law carries the corrected statement, and its experiment refutes the wrong one.</p>"
    ]
    count = 0
    for topic in catalogue.topics():
        wrong = [name for name in catalogue.law_names([topic]) if catalogue.law(name).erratum]
        parts += [f"<h2>{topic}</h2>"] if wrong else []
        for name in wrong:
            law = catalogue.law(name)
            count += 1
            parts.append(
                f'<article><h3><a href="laws/{name}.html">{name}</a></h3><p><b>In print:</b> {prose(law.erratum or "")}</p>'
                f"<p><b>What holds:</b> {prose(law.claim)}</p>"
                f'<div class="th-drawn" tabindex="0">{formula(law.formula, display=True)}</div></article>'
            )
    return Page(
        "errata.html", "Errata", "".join(parts), f"{count} statements of the literature that laws refute", "page"
    )


def finding_article(finding: Any, title: str) -> str:
    """A finding as the pages of reports show it, under a title of ours."""
    tag = "code" if is_code(finding.remedy) else "b"
    return (
        f'<article class="th-finding th-v-{finding.severity}"><h3>{MARKS[finding.severity]} {html.escape(title)}'
        f"</h3><p>{html.escape(finding.says)}</p>"
        f'<p class="th-type"><span class="th-soft">Fix:</span> <{tag}>{html.escape(finding.remedy)}</{tag}></p></article>'
    )


def _ailment(entry: catalogue.CatalogueEntry, example: str) -> str:
    ailment = catalogue.ailment(entry.name)
    return _facts(
        entry,
        ailment.question,
        {
            "needs": _needs(ailment.needs),
            "how it is checked": _judged_by(ailment),
            "theory": _links(ailment.laws, "laws"),
            "how often it is right": clinic_figures(entry.name),
        },
        example,
    )


def _clinic_rows() -> list[list[str]]:
    rows = [line.strip("| ").split(" | ") for line in CLINIC.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if len(row) == 6]


def _short_figures(name: str) -> str:
    return next((f"{found} of {runs}" for own, runs, found, *_ in _clinic_rows() if own == name), "–")


def clinic_figures(name: str) -> str:
    """How often the clinic found and cured it, and how often its alarm was right there; nothing where it had no such run."""
    told = [
        f"found in {found} of {runs} test runs with this fault, named first in {first}"
        + ("" if cured == "–" else f"; the fix worked in {cured}")
        for own, runs, found, _, first, cured in _clinic_rows()
        if own == name
    ]
    right, raised = counted_findings().get(name, (0, 0))
    told += [f"{right} of {raised} alarm{'s were' if raised != 1 else ' was'} right"] if raised else []
    return "; ".join(told)


def _instrument(entry: catalogue.CatalogueEntry, example: str) -> str:
    instrument = catalogue.instrument(entry.name)
    return _facts(
        entry,
        instrument.question,
        {
            "use it alone": f'<code>th.read("{entry.name}", subject)</code>, '
            f"<code>theodolite survey --instrument {entry.name}</code>",
            "needs": _needs(instrument.needs),
            "cost": COSTS[instrument.cost],
            "theory": _links(instrument.laws, "laws"),
        },
        example,
    )


def _facts(entry: catalogue.CatalogueEntry, question: str, rows: dict[str, str], example: str) -> str:
    facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items() if value)
    rest = entry.docstring.partition("\n")[2].strip()
    said = "".join(f"<p>{prose(' '.join(part.split()))}</p>" for part in rest.split("\n\n") if part.strip())
    kind = f'<p class="th-small th-soft">{entry.kind} · <code>theodolite explain {entry.name}</code></p>'
    head = f'<h1>{entry.name}</h1>{kind}<p class="th-claim">{prose(question)}</p>'
    return (
        f"{head}{example}{said}<dl>{facts}</dl>"
        if entry.kind == "ailment"
        else f"{head}{said}<dl>{facts}</dl>{example}"
    )


def _links(names: Iterable[str], folder: str) -> str:
    return ", ".join(f'<a href="../{folder}/{name}.html">{name}</a>' for name in names)
