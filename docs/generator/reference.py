"""The API from its docstrings: one page for the names of the package itself and one for each of its rooms and topics."""

from __future__ import annotations

import functools
import html
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import theodolite
from generator.pages import Page, words_of
from theodolite.report.formulas import formula, prose
from theodolite.report.unicode_math import unicode_prose

ROOMS = ("theory", "measure", "construct")


@functools.cache
def modules() -> dict[str, ModuleType]:
    """Every public package by its dotted name after `th`, the package itself first."""
    home = Path(theodolite.__file__).parent
    found = {"": theodolite}
    for room in ROOMS:
        for stub in sorted((home / room).glob("*/__init__.pyi")):
            name = f"{room}.{stub.parent.name}"
            found[name] = importlib.import_module(f"theodolite.{name}")
    for name in ("bayes", "nn", "optim", "testing"):
        found[name] = importlib.import_module(f"theodolite.{name}")
    return found


def place_of(name: str) -> str:
    """The address of `th.a.b.c` in the reference.

    >>> place_of("th.Watch"), place_of("th.theory.kernels.mlp_kernels")
    ('api/theodolite.html#Watch', 'api/theory.kernels.html#mlp_kernels')
    """
    path, _, last = name.removeprefix("th.").rpartition(".")
    return f"api/{path or 'theodolite'}.html#{last}"


def reference_pages() -> list[Page]:
    """The pages, the first of them a list."""
    pages = [module_page(name, module) for name, module in modules().items()]
    rows = "".join(f'<li><a href="{Path(p.path).name}">{p.title}</a>: {html.escape(p.summary)}</li>' for p in pages)
    about = "Every public name, by room and topic: theory predicts, measure measures, construct builds."
    return [
        Page("api/index.html", "API", f"<h1>API</h1><p>{about}</p><ul>{rows}</ul>", "Every public name", "API"),
        *pages,
    ]


def name_rows() -> Iterator[Page]:
    """Each public name, for the search; its page is a place on one of the others."""
    for path, module in modules().items():
        for name, value in _public(module):
            whole = ".".join(filter(None, ("th", path, name)))
            yield Page(place_of(whole), whole, "", words_of(unicode_prose(_lines(value)[0])), "API")


def module_page(name: str, module: ModuleType) -> Page:
    """One module: what it is for, its names, and each of them."""
    title = f"th.{name}" if name else "th"
    about = (inspect.getdoc(module) or "").partition("\n")[0]
    public = _public(module)
    names = "".join(f'<li><a href="#{own}"><code>{own}</code></a></li>' for own, _ in public)
    parts = [f"<h1>{title}</h1><p>{prose(about)}</p>"]
    parts += (
        [f'<nav aria-label="Names on this page"><ul class="th-names">{names}</ul></nav>'] if len(public) > 3 else []
    )
    parts += [_entry(own, value) for own, value in public]
    return Page(f"api/{name or 'theodolite'}.html", title, "".join(parts), words_of(unicode_prose(about)), "API")


def _public(module: ModuleType) -> list[tuple[str, Any]]:
    names = [name for name in getattr(module, "__all__", ()) if not name.startswith("__")]
    own = names or [
        n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__ and n[0] != "_"
    ]
    found = [(name, getattr(module, name)) for name in own]
    return sorted(((n, v) for n, v in found if callable(v)), key=lambda pair: pair[0].lower())


def _entry(name: str, value: Any) -> str:
    body = [
        f'<section><h2 id="{name}"><code>{name}</code></h2><pre tabindex="0"><code>{_signature(name, value)}</code></pre>'
    ]
    body.append(_documented(inspect.getdoc(value) or ""))
    if inspect.isclass(value):
        for own, member in vars(value).items():
            text = _member_text(member)
            if not own.startswith("_") and text:
                body.append(f"<h3><code>.{own}</code></h3>{_documented(inspect.cleandoc(text))}")
    return "".join(body) + "</section>"


def _member_text(member: Any) -> str:
    inner = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return (getattr(inner, "__doc__", "") or "") if inspect.isfunction(inner) else ""


def _signature(name: str, value: Any) -> str:
    try:
        shape = str(inspect.signature(value))
    except (TypeError, ValueError):
        return html.escape(name)
    shape = re.sub(r"<(?:function|class|object)[^>]*>", "…", shape)
    shape = re.sub(
        r"""(: |-> )(['"])(.*?)\2(?=[,)= ]|$)""", r"\1\3", shape
    )  # annotations are strings until they are needed
    shape = shape.replace("theodolite.", "").replace("torch._tensor.", "")
    shape = shape.removesuffix(" -> None") if inspect.isclass(value) else shape
    return html.escape(name + (shape if len(shape) < 90 else shape.replace(", ", ",\n    ").replace("(", "(\n    ", 1)))


def _lines(value: Any) -> list[str]:
    return (inspect.getdoc(value) or "").splitlines() or [""]


def _documented(text: str) -> str:
    """A docstring as HTML: paragraphs with formulas drawn, and its doctests as code."""
    parts = []
    for part in re.split(r"\n\s*\n", text):
        if not part.strip():
            continue
        if ">>>" in part:
            before, _, code = part.partition(">>>")
            parts += [f"<p>{prose(' '.join(before.split()))}</p>"] if before.strip() else []
            parts.append(f'<pre tabindex="0"><code>{html.escape(inspect.cleandoc(">>>" + code))}</code></pre>')
        elif re.search(r"^\s{4,}\S", part, re.MULTILINE) and "\n" in part:
            parts.append(f'<pre tabindex="0">{html.escape(part)}</pre>')
        else:
            parts.append(f"<p>{_marked(' '.join(part.split()))}</p>")
    return "".join(parts)


WIDE = 40
"""Characters of TeX from which on a formula may be wider than a phone: it scrolls by itself, and can be reached by keyboard."""


def _marked(text: str) -> str:
    """A paragraph with its formulas drawn and its names as code; a formula may stand within marks of code."""
    parts = []
    for place, part in enumerate(re.split(r"\$([^$]+)\$", text.replace("$$", "$"))):
        if place % 2:
            drawn = formula(part)
            wide = len(part) > WIDE
            parts.append(f'<span class="th-drawn th-long" tabindex="0">{drawn}</span>' if wide else drawn)
            continue
        pieces = re.split(r"``?([^`]+)``?", part)
        parts += [
            f"<code>{html.escape(p)}</code>" if n % 2 else html.escape(p.replace("`", "")) for n, p in enumerate(pieces)
        ]
    return "".join(parts)
