"""A page of the site, the frame around it, the links that must lead somewhere, and the search."""

from __future__ import annotations

import html
import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from generator.glossary import with_links
from theodolite.report.rendering import Frame, document_page

LINKS = (
    ("Theodolite", "index.html"),
    ("Questions", "questions.html"),
    ("Guide", "guide/index.html"),
    ("Findings", "ailments/index.html"),
    ("Instruments", "instruments/index.html"),
    ("Atlas", "atlas.html"),
    ("Documents", "documents/index.html"),
    ("Gallery", "gallery/index.html"),
    ("API", "api/index.html"),
)
SEARCH = "search.html"
LARGEST = 500_000  # bytes of a page
SCRIPT = "search.js"


@dataclass(frozen=True)
class Page:
    """A page by its path from the root; ``body`` is HTML, ``summary`` one line of plain words for index and search."""

    path: str
    title: str
    body: str
    summary: str = ""
    kind: str = "page"


def framed(pages: Sequence[Page]) -> dict[str, str]:
    """The pages of one kind as documents, each with the one before and the one after."""
    files = {}
    for place, page in enumerate(pages):
        before = pages[place - 1] if place else None
        after = pages[place + 1] if place + 1 < len(pages) else None
        frame = Frame(
            root="../" * page.path.count("/"),
            links=LINKS,
            before=(before.title, before.path) if before else None,
            after=(after.title, after.path) if after else None,
            search=SEARCH,
            script=SCRIPT,
        )
        body = page.body.replace("<table>", '<table tabindex="0">')  # it may scroll: then a keyboard must reach it
        if page.kind in ("ailment", "instrument", "guide"):
            body = with_links(body, frame.root)
        files[page.path] = document_page(page.title, body, frame)
    return files


def search_files(pages: Iterable[Page]) -> dict[str, str]:
    """Every page in one list; a script narrows it, and without one the browser's own search does."""
    pages = sorted(pages, key=lambda page: (page.kind == "decision", page.title.lower()))
    rows = "".join(
        f'<li data-kind="{page.kind}"><a href="{page.path}">{html.escape(page.title)}</a> '
        f'<span class="th-soft">{page.kind}</span> '
        f"{html.escape(page.summary)}</li>"
        for page in pages
    )
    body = (
        '<h1>Search</h1><p><label for="q">Words</label> <input id="q" type="search" class="th-field"> '
        f'<span id="count" class="th-soft" role="status"></span></p><ul id="found">{rows}</ul>'
    )
    questions = (Path(__file__).parents[1] / "questions.md").read_text(encoding="utf-8")
    listed = json.dumps(
        [
            [page.title, page.path, page.kind, page.summary, _more_words(page), int(f"`{page.title}`" in questions)]
            for page in pages
        ],
        separators=(",", ":"),
    )
    code = (Path(__file__).parent / SCRIPT).read_text(encoding="utf-8")
    return {
        SEARCH: document_page("Search", body, Frame(links=LINKS, script=SCRIPT)),
        SCRIPT: f"const pages = {listed};\n{code}",
    }


def _more_words(page: Page) -> str:
    """What a page of the guide tells of beside its first sentence: its headings and what is bold there."""
    found = re.findall(r"<(h[23]|strong)\b[^>]*>(.*?)</\1>", page.body) if page.kind == "guide" else []
    return re.sub(r"<[^>]*>", "", " ".join(words for _, words in found))


class _Addresses(HTMLParser):
    """Where a page leads, and what can be led to on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src", "action") and value:
                self.links.append(value)


def faults(files: Mapping[str, str], others: Iterable[str] = ()) -> list[str]:
    """What is wrong with a site: links that lead nowhere or out of it, pages that are too large, formulas not drawn."""
    seen = {path: _Addresses(text) for path, text in files.items() if path.endswith(".html")}
    known = {*files, *others}
    found = [f"{path}: {len(text):,} bytes" for path, text in files.items() if len(text) > LARGEST]
    for path, text in files.items():
        if 'class="th-tex"' in text:
            found += [f"{path}: not drawn: {tex}" for tex in re.findall(r'class="th-tex">([^<]*)', text)]
    for path, page in seen.items():
        for link in page.links:
            if link.startswith(("data:", "https://")):
                continue
            address, _, place = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), address)) if address else path
            if target not in known:
                found.append(f"{path}: no {link}")
            elif place and target in seen and place not in seen[target].ids:
                found.append(f"{path}: no place {link}")
    return found


def words_of(summary: str) -> str:
    """A line of plain words, shortened for lists."""
    return " ".join(summary.split())[:220]
