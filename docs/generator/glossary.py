"""Words of the glossary: their places on its page, and links to them where a page uses one for the first time."""

from __future__ import annotations

import functools
import re
from pathlib import Path

GLOSSARY = Path(__file__).parents[1] / "glossary.md"
ALONE = ("catapult", "probe", "sharpness")
"""Words of one part that mean nothing else on a page; others, such as law or critical, have their everyday meaning too."""
UNTOUCHED = ("a", "code", "pre", "math", "svg", "dt", "h1", "h2", "h3", "h4", "table")


@functools.cache
def places() -> dict[str, str]:
    """Each word that is linked, in lower case, and its place on the page of the glossary."""
    found = {}
    for entry in re.findall(r"(?m)^- (\*\*.+?): ", GLOSSARY.read_text(encoding="utf-8")):
        words = [word.lower() for word in re.findall(r"\*\*(.+?)\*\*", entry)]
        linked = [word for word in words if word in ALONE or re.fullmatch(r"[a-z]+([ -][a-z]+)+", word)]
        found |= {word: _place(words[0]) for word in linked}
    return found


def _place(word: str) -> str:
    return re.sub(r"[^a-z]+", "-", word.lower()).strip("-")


def with_places(body: str) -> str:
    """The page of the glossary with a place for each of its words."""
    return re.sub(r"<li>(\s*(?:<p>)?<strong>(.+?)</strong>)", lambda m: f'<li id="{_place(m[2])}">{m[1]}', body)


def with_links(body: str, root: str) -> str:
    """The first use of each word in running text leads to the glossary."""
    known, inside, parts = dict(places()), 0, []
    word = re.compile(rf"\b({'|'.join(sorted(map(re.escape, known), key=len, reverse=True))})(?=s?\b)", re.IGNORECASE)

    def link(match: re.Match[str]) -> str:
        place = known.pop(match[0].lower(), None)
        return match[0] if place is None else f'<a href="{root}glossary.html#{place}">{match[0]}</a>'

    for part in re.split(r"(<[^>]+>)", body):
        if tag := re.match(r"<(/?)(\w+)", part):
            inside += (tag[2] in UNTOUCHED) * (-1 if tag[1] else 1)
            parts.append(part)
        else:
            parts.append(part if inside else word.sub(link, part))
    return "".join(parts)
