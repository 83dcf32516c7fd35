"""Writes docs/site: the guide and glossary as pages, a page for every law, instrument and ailment, and the atlas.

Run by `make docs`. The atlas is measured anew where a law has changed; finished verdicts are reused.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import rooms  # beside this file
from markdown_it import MarkdownIt

from theodolite import catalogue
from theodolite.cli import main
from theodolite.io.files import write_atomically
from theodolite.report.formulas import prose
from theodolite.report.html import document_page
from theodolite.report.text import as_text, explanation
from theodolite.verbs.diagnosing import clinic_counts

HERE = Path(__file__).parent
SITE = HERE / "site"
CLINIC = HERE / "clinic.md"
PAGES = {"guide": HERE / "guide.md", "glossary": HERE / "glossary.md"}


def entry_page(entry: catalogue.CatalogueEntry) -> str:
    if entry.kind == "ailment":
        return ailment_page(entry)
    subject = catalogue.law(entry.name) if entry.kind == "law" else catalogue.instrument(entry.name)
    text = as_text(explanation(subject, references=catalogue.references(), documentation=entry.docstring), width=96)
    link = f'<p><a href="../atlas.html#{entry.name}">its figure and readings in the atlas</a></p>'
    return f"<pre>{html.escape(text)}</pre>" + (link if entry.kind == "law" else "")


def ailment_page(entry: catalogue.CatalogueEntry) -> str:
    """What it asks, what it is judged by and rests on, what follows from it, and the networks it is tried on."""
    ailment = catalogue.ailment(entry.name)
    kept = {name: _names(kind) for name, kind in ailment.examples.items()}
    rows = {
        "needs": ", ".join(sorted(ailment.needs)),
        "judged by": ", ".join(ailment.signs),
        "explains": _links(ailment.explains, "ailments"),
        "rests on": _links(ailment.laws, "laws"),
        "in the clinic": clinic_figures(entry.name),
        **{f"{name} examples": ", ".join(found) for name, found in kept.items()},
    }
    facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items() if value)
    said = "".join(f"<p>{prose(part)}</p>" for part in entry.docstring.split("\n\n"))
    home = '<p><a href="../index.html">Theodolite</a> · <a href="../guide.html">guide</a></p>'
    return f"{home}<h1>{entry.name}</h1><p><b>{prose(ailment.question)}</b></p>{said}<dl>{facts}</dl>"


def clinic_figures(name: str) -> str:
    """How often the clinic found and cured it, and how often its alarm was right there; nothing where it had no such run."""
    rows = [line.strip("| ").split(" | ") for line in CLINIC.read_text(encoding="utf-8").splitlines()]
    told = [
        f"of {runs} sick runs {found} were found, {first} with this cause first"
        + ("" if cured == "–" else f"; its remedy cured {cured}")
        for own, runs, found, _, first, cured in (row for row in rows if len(row) == 6 and row[0] == name)
    ]
    right, raised = clinic_counts().get(name, (0, 0))
    told += [f"of {raised} alarms {right} were right"] if raised else []
    return "; ".join(told)


def _names(examples: tuple[Callable[..., object], ...]) -> list[str]:
    """The functions' own names as words."""
    return [getattr(example, "__name__", "example").strip("_").replace("_", " ") for example in examples]


def _links(names: tuple[str, ...], folder: str) -> str:
    return ", ".join(f'<a href="../{folder}/{name}.html">{name}</a>' for name in names)


def index_page() -> str:
    lines = [
        '<p><a href="guide.html">Guide</a> · <a href="glossary.html">Glossary</a> · <a href="atlas.html">Atlas</a></p>'
    ]
    for heading, kind in (("Ailments", "ailment"), ("Instruments", "instrument"), ("Laws", "law")):
        lines.append(f"<h2>{heading}</h2><ul>")
        for entry in catalogue.entries():
            if entry.kind == kind:
                summary = prose(entry.summary)
                lines.append(f'<li><a href="{kind}s/{entry.name}.html">{entry.name}</a>: {summary}</li>')
        lines.append("</ul>")
    return "\n".join(lines)


def build() -> int:
    write_atomically(rooms.PICTURE, rooms.picture())
    markdown = MarkdownIt("commonmark").enable("table")
    for name, source in PAGES.items():
        page = document_page(name.capitalize(), markdown.render(source.read_text(encoding="utf-8")))
        write_atomically(SITE / f"{name}.html", page)
    for entry in catalogue.entries():
        write_atomically(SITE / f"{entry.kind}s" / f"{entry.name}.html", document_page(entry.name, entry_page(entry)))
    write_atomically(SITE / "index.html", document_page("Theodolite", index_page()))
    return main(["check", "--jobs", "2", "--break-assumptions", "--out", str(SITE)])


if __name__ == "__main__":
    raise SystemExit(build())
