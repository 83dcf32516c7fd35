"""Pages that are written by hand in Markdown: the guide, a page for each of its sections, and all others in docs."""

from __future__ import annotations

import functools
import html
import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from generator.glossary import with_places
from generator.pages import Page, words_of
from generator.times import times_section
from theodolite import catalogue

DOCS = Path(__file__).parent.parent
NAMES = ("questions", "laws", "glossary", "words", "transfer", "clinic", "benchmarks", "benchmarks_gpu", "others")
OTHERS = {f"{name}.md": f"{name}.html" for name in NAMES}


def rendered_markdown(text: str, path: str) -> str:
    """Markdown as HTML: headings have places, links between Markdown files become links between pages."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(text)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", heading_place(tokens[place + 1].content))
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", _address(str(child.attrs["href"]), path))
            if child.type == "image":
                child.attrSet("src", _picture(str(child.attrs["src"]), path))
        if token.type == "inline":
            _link_names(token.children or [], path)
    return _scrolling(parser.renderer.render(tokens, parser.options, {}))


def _link_names(children: list[Token], path: str) -> None:
    """Names of ailments, instruments and laws that are written as code lead to their pages, outside of links."""
    inside = 0
    for child in children:
        inside += (child.type == "link_open") - (child.type == "link_close")
        if child.type == "code_inline" and not inside and (kind := _kinds().get(child.content)):
            address = "../" * path.count("/") + f"{kind}s/{child.content}.html"
            child.type, child.content = "html_inline", f'<a href="{address}"><code>{child.content}</code></a>'


@functools.cache
def _kinds() -> dict[str, str]:
    """What each name with a hyphen is; a single word may mean anything."""
    return {entry.name: entry.kind for entry in catalogue.entries() if "-" in entry.name}


def _scrolling(text: str) -> str:
    """Blocks of code can be reached by keyboard, since they may be wider than the page."""
    return text.replace("<pre>", '<pre tabindex="0">')


def heading_place(heading: str) -> str:
    """The place of a heading in an address.

    >>> heading_place("My network does not train")
    'my-network-does-not-train'
    """
    return re.sub(r"[^a-z0-9]+", "-", html.unescape(heading).lower()).strip("-")


def _picture(source: str, path: str) -> str:
    return source if source.startswith("data:") else "../" * path.count("/") + _among_docs(source, path)


def _among_docs(name: str, path: str) -> str:
    """Where a file lies among the documents that a page's Markdown names from its own place."""
    folder = path.partition("/")[0] if path.startswith(("design/", "from/")) else ""
    return posixpath.normpath(posixpath.join(folder, name))


def _address(link: str, path: str) -> str:
    if link.startswith(("http", "#", "data:")) or not re.search(r"\.md(#|$)", link):
        return link
    name, _, place = link.partition("#")
    source = _among_docs(name, path)
    if source == "guide.md" and place:  # a section is a page
        return "../" * path.count("/") + f"guide/{place}.html"
    target = {**OTHERS, "guide.md": "guide/index.html"}.get(source) or re.sub(r"\.md$", ".html", source)
    return "../" * path.count("/") + target + (f"#{place}" if place else "")


def guide_pages() -> list[Page]:
    """The guide, one page a section, the first of them its contents."""
    text = (DOCS / "guide.md").read_text(encoding="utf-8")
    opening, *sections = re.split(r"(?m)^## ", text)
    pages = []
    for section in sections:
        title, _, body = section.partition("\n")
        path = f"guide/{heading_place(title)}.html"
        pages.append(Page(path, title, rendered_markdown(f"# {title}\n{body}", path), _first_sentence(body), "guide"))
    listed = "".join(
        f'<li><a href="{Path(page.path).name}">{page.title}</a>: {html.escape(page.summary)}</li>' for page in pages
    )
    first, end, rest = rendered_markdown(opening, "guide/index.html").partition("</p>")
    body = f"{first}{end}<h2>Contents</h2><ul>{listed}</ul><h2>How to read a number</h2>{rest}"
    home = Page("guide/index.html", "Guide", body, "Where to begin", "guide")
    return [home, *pages]


def coming_pages() -> list[Page]:
    """One page for each library that people come from, with the times of both at its foot."""
    pages = [_page(file, f"from/{file.stem}.html", "coming from") for file in sorted((DOCS / "from").glob("*.md"))]
    return [replace(page, body=page.body + times_section(Path(page.path).stem)) for page in pages]


def other_pages() -> Iterator[Page]:
    """Questions, glossary, clinic, benchmarks, what others do, and design decisions."""
    for name, path in OTHERS.items():
        page = _page(DOCS / name, path, "page")
        yield replace(page, body=with_places(page.body)) if name == "glossary.md" else page
    for file in sorted((DOCS / "design").glob("*.md")):
        yield _page(file, f"design/{file.stem}.html", "decision")


def question_rows() -> list[Page]:
    """The questions that people ask first, for the search: each with what to type."""
    text = (DOCS / "questions.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| ([^|]+\?) \| `([^`]+)`[^|]*\|", text)
    return [Page("questions.html", question, "", f"type {command}", "question") for question, command in rows]


def _page(file: Path, path: str, kind: str) -> Page:
    text = file.read_text(encoding="utf-8")
    title = text.partition("\n")[0].lstrip("# ")
    return Page(path, title, rendered_markdown(text, path), _first_sentence(text.partition("\n")[2]), kind)


def _first_sentence(text: str) -> str:
    """The first sentence outside code, tables and headings, without marks."""
    bare = re.sub(r"(?s)```.*?```", "", text)
    part: Any = next((p for p in bare.split("\n\n") if p.strip() and not p.lstrip().startswith(("|", "#", "!"))), "")
    plain = re.sub(r"[*`]|\[|\]\([^)]*\)", "", " ".join(part.split()))
    return words_of(re.split(r"(?<=[.?!]) ", plain)[0])
