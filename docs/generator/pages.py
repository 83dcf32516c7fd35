"""A page of the site, the frame around it, the links that must lead somewhere, and the search."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from theodolite.report.sites import Frame, document_page

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
_SCRIPT = """
const same = {high: ['large'], big: ['large'], low: ['small'], slow: ['small'], nan: ['finite'], inf: ['finite'],
  lr: ['learning rate'], lora: ['adapter'], checkpoint: ['weights'], batchnorm: ['statistics'], imbalance: ['unbalanced'],
  imbalanced: ['unbalanced'],
  plateau: ['stall'], stuck: ['stall'], falling: ['fall'], exploding: ['explode'], vanishing: ['vanish'],
  overfitting: ['overfit'],
  mask: ['leaks'], shuffle: ['noise'], init: ['initializ'], initialize: ['initializ']};
const idle = new Set(
  'a an and are be can do does for how i in is it its my of on or should the to too what which why with'.split(' '));
const box = document.getElementById('q'), list = document.getElementById('found');
const rows = [...list.querySelectorAll('li')].map(row => ({
  row, name: row.querySelector('a').textContent.toLowerCase(), text: row.textContent.toLowerCase(),
  first: {ailment: 2, question: 2, guide: 1}[row.dataset.kind] || 0}));
function show(asked) {
  const words = asked.toLowerCase().split(/[^a-z0-9.]+/).filter(word => word && !idle.has(word));
  const scored = rows.map(one => {
    const hits = words.map(word => [word, ...(same[word] || [])].some(form => one.text.includes(form)));
    const named = words.filter(word => one.name.includes(word)).length;
    return {one, hits: hits.filter(Boolean).length, score: 3 * named + one.first};
  });
  const most = Math.max(0, ...scored.map(found => found.hits));
  scored.sort((a, b) => b.hits - a.hits || b.score - a.score);
  let count = 0;
  for (const found of scored) {
    const hit = !words.length || (most > 0 && found.hits === most);
    found.one.row.hidden = !hit; count += hit;
    if (words.length) list.append(found.one.row);
  }
  document.getElementById('count').textContent = count + (count === 1 ? ' page' : ' pages');
}
box.value = new URLSearchParams(location.search).get('q') || '';
box.addEventListener('input', () => show(box.value));
box.focus();
show(box.value);
"""


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
        )
        body = page.body.replace("<table>", '<table tabindex="0">')  # it may scroll: then a keyboard must reach it
        files[page.path] = document_page(page.title, body, frame)
    return files


def search_page(pages: Iterable[Page]) -> str:
    """Every page in one list; a script narrows it, and without one the browser's own search does."""
    rows = "".join(
        f'<li data-kind="{page.kind}"><a href="{page.path}">{html.escape(page.title)}</a> '
        f'<span class="th-soft">{page.kind}</span> '
        f"{html.escape(page.summary)}</li>"
        for page in sorted(pages, key=lambda page: (page.kind == "decision", page.title.lower()))
    )
    body = (
        '<h1>Search</h1><p><label for="q">Words</label> <input id="q" type="search" class="th-field"> '
        f'<span id="count" class="th-soft" role="status"></span></p><ul id="found">{rows}</ul>'
    )
    return document_page("Search", body, Frame(links=LINKS), script=_SCRIPT)


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
