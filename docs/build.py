"""Writes docs/site: the guide and glossary as pages, a page for every law and instrument, and the atlas.

Run by `make docs`. The atlas is measured anew where a law has changed; finished verdicts are reused.
"""

from __future__ import annotations

import html
from pathlib import Path

import rooms  # beside this file
from markdown_it import MarkdownIt

from theodolite import catalogue
from theodolite.cli import main
from theodolite.io.files import write_atomically
from theodolite.report.formulas import prose
from theodolite.report.html import document_page
from theodolite.report.text import as_text, explanation

HERE = Path(__file__).parent
SITE = HERE / "site"
PAGES = {"guide": HERE / "guide.md", "glossary": HERE / "glossary.md"}


def entry_page(entry: catalogue.CatalogueEntry) -> str:
    subject = catalogue.law(entry.name) if entry.kind == "law" else catalogue.instrument(entry.name)
    text = as_text(explanation(subject, references=catalogue.references(), documentation=entry.docstring), width=96)
    link = f'<p><a href="../atlas.html#{entry.name}">its figure and readings in the atlas</a></p>'
    return f"<pre>{html.escape(text)}</pre>" + (link if entry.kind == "law" else "")


def index_page() -> str:
    lines = [
        '<p><a href="guide.html">Guide</a> · <a href="glossary.html">Glossary</a> · <a href="atlas.html">Atlas</a></p>'
    ]
    for heading, kind in (("Laws", "law"), ("Instruments", "instrument")):
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
