"""The documents that the toolkit grew from, walked through in their own order: what each part says, and what it runs as."""

from __future__ import annotations

import csv
import html
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from generator.pages import Page
from theodolite import catalogue
from theodolite.report.formulas import prose
from theodolite.report.words import MARKS

TABLES = Path(__file__).parent.parent / "documents"
TITLES = {
    "lecture-notes": (
        "Lecture notes on the theory of deep learning",
        "Notes of the course ORF 543 (2023), 9/14 to 12/7.",
    ),
    "memorization-and-dimension": (
        "Notes on memorization and dimension",
        "Notes of a reading group (November 2023) on finite-sample expressivity, intrinsic dimension and manifolds.",
    ),
    "corrective-networks": (
        "The talk on corrective networks",
        "D. Nagaraj with G. Bresler, A corrective view of neural networks: representation, memorization and learning (2020).",
    ),
    "weight-and-feature-spectra": (
        "The post on weight and feature spectra",
        "A simple toy model bridging HTSR and alpha-ReQ: how spectra of weights and of features hang together.",
    ),
    "spindly-networks": (
        "The talk on spindly networks",
        "M. Warmuth, W. Kotłowski and E. Amid, A case where a spindly two-layer linear network decisively outperforms any "
        "network with a fully connected input layer (2021).",
    ),
}
KINDS = ("definition", "statement", "experiment", "question")


@dataclass(frozen=True)
class Statement:
    """One part of a document in our own words; ``runs_as`` names laws, instruments, ailments, functions, examples."""

    section: str
    kind: str
    says: str
    runs_as: tuple[str, ...]
    note: str

    @property
    def laws(self) -> tuple[str, ...]:
        return tuple(name for name in self.runs_as if _kind(name) == "law")


def statements(document: str) -> list[Statement]:
    """The rows of a document's table."""
    with (TABLES / f"{document}.csv").open(encoding="utf-8", newline="") as file:
        return [
            Statement(
                row["section"], row["kind"], row["says"], tuple(filter(None, row["runs_as"].split(", "))), row["note"]
            )
            for row in csv.DictReader(file)
        ]


def counts(rows: list[Statement]) -> dict[str, int]:
    """How many parts there are, with a law, with something else that runs, and with nothing."""
    found = Counter("law" if row.laws else "other" if row.runs_as else "nothing" for row in rows)
    return {"all": len(rows), **{name: found[name] for name in ("law", "other", "nothing")}}


def beyond() -> dict[str, str]:
    """The laws of the catalogue that no document states, each with what it adds."""
    with (TABLES / "beyond.csv").open(encoding="utf-8", newline="") as file:
        told = {row["law"]: row["why"] for row in csv.DictReader(file)}
    return {name: told[name] for name in catalogue.law_names() if name in told}


def walk_pages(outcomes: Mapping[str, str]) -> list[Page]:
    """A page for each document, and before them one that counts; ``outcomes`` are the verdicts of laws by name."""
    pages = [_walk(document, outcomes) for document in TITLES]
    rows = "".join(
        f'<tr><td><a href="{document}.html">{html.escape(title)}</a></td>'
        + "".join(f'<td class="th-num">{count}</td>' for count in counts(statements(document)).values())
        + "</tr>"
        for document, (title, _) in TITLES.items()
    )
    body = (
        "<h1>Five documents, walked through</h1><p>The toolkit grew from five documents. Each is followed here in its own "
        "order: every definition, statement, experiment and open question in our own words, next to the law, instrument, "
        "function or example that runs it, with an erratum if it was wrong and the reason if nothing runs.</p>"
        "<table><thead><tr><th>document</th><th>parts</th><th>with a law</th><th>with something else that runs</th>"
        f"<th>with nothing</th></tr></thead><tbody>{rows}</tbody></table>"
    )
    left = _without()
    body += f"<h2>With nothing that runs</h2><ul>{left}</ul>" if left else ""
    further = "".join(f'<li><a href="../laws/{name}.html">{name}</a>: {why}</li>' for name, why in beyond().items())
    body += f"<h2>Laws beyond them</h2><ul>{further}</ul>" if further else ""
    summary = "Every statement of the five documents next to the code that runs it"
    return [Page("documents/index.html", "Documents", body, summary, "document"), *pages]


def _without() -> str:
    """The parts that run as nothing, each with its document and the reason."""
    return "".join(
        f'<li><a href="{document}.html">{html.escape(title)}</a>: {html.escape(row.says)} '
        f'<span class="th-soft">{html.escape(row.note)}</span></li>'
        for document, (title, _) in TITLES.items()
        for row in statements(document)
        if not row.runs_as
    )


def _walk(document: str, outcomes: Mapping[str, str]) -> Page:
    title, about = TITLES[document]
    found = statements(document)
    number = counts(found)
    parts = [
        f"<h1>{html.escape(title)}</h1><p>{html.escape(about)}</p>",
        f"<p>{number['all']} parts: {number['law']} with a law, {number['other']} with something else that runs, "
        f"{number['nothing']} with nothing.</p>",
    ]
    section = ""
    for row in found:
        if row.section != section:
            parts.append(("</ol>" if section else "") + f'<h2>{html.escape(row.section)}</h2><ol class="th-walk">')
            section = row.section
        parts.append(f"<li>{_part(row, outcomes)}</li>")
    return Page(f"documents/{document}.html", title, "".join(parts) + "</ol>", about, "document")


def _part(row: Statement, outcomes: Mapping[str, str]) -> str:
    names = [_shown(name, outcomes) for name in row.runs_as]
    errata = [
        f'<aside class="th-erratum"><b>† {name}</b><p>{prose(text)}</p></aside>'
        for name in row.laws
        if (text := catalogue.law(name).erratum)
    ]
    runs = f'<div class="th-small">{" · ".join(names)}</div>' if names else ""
    note = f'<div class="th-small th-soft">{html.escape(row.note)}</div>' if row.note else ""
    said = f'<b class="th-soft">{row.kind}</b> {html.escape(row.says)}'
    return said + runs + note + "".join(errata)


def _shown(name: str, outcomes: Mapping[str, str]) -> str:
    kind = _kind(name)
    if kind == "function":
        from generator.reference import place_of

        return f'<a href="../{place_of(name)}"><code>{name}</code></a>'
    if kind == "example":
        return f"<code>{name}</code>"
    end = outcomes.get(name, "")
    mark = f'<span class="th-s th-s-{end} th-s-mark" title="{end}">{MARKS[end]}</span>' if end else ""
    return f'{mark}<a href="../{kind}s/{name}.html">{name}</a>'


def _kind(name: str) -> str:
    if name.startswith("th."):
        return "function"
    return "example" if name.endswith(".py") else catalogue.entry(name).kind
