"""Templates filled with values, the frame of a site, and the small pieces of every row: the one place that knows jinja.

Those pieces are written here, since a page of thousands of rows calls for each of them. Templates are kept compiled beside them,
as Python keeps its modules: to compile them takes longer than to fill them.
"""

from __future__ import annotations

import contextlib
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from theodolite.io.files import write_atomically
from theodolite.report.words import MARKS, printable

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment
    from jinja2.bccache import Bucket

    from theodolite.report.views import Bullet

_BREAKS = re.compile(r"(?<!\d)[./]|[./](?!\d)")


def rendered(template: str, **values: Any) -> str:
    """A template with these values; marks are those of readings unless others are given."""
    return _environment().get_template(template).render(**{"marks": MARKS, **values})


Link = tuple[str, str]
"""Words, and an address from the root of the site."""


@dataclass(frozen=True)
class Frame:
    """What stands around a page of a site.

    ``root`` leads from the page to the root of the site; ``search`` is the address of the page that a search opens, ``script``
    that of the script that answers it.
    """

    root: str = ""
    links: tuple[Link, ...] = ()
    before: Link | None = None
    after: Link | None = None
    search: str = ""
    script: str = ""


def document_page(title: str, body: str, frame: Frame | None = None) -> str:
    """A page of documentation; ``body`` is HTML that is ours, not a user's."""
    return rendered("document.html.j2", title=title, body=Markup(body), frame=frame or Frame())


def picture_file(svg: str) -> str:
    """A figure as a file of its own: it carries the style that a page would give it, in light."""
    style = rendered("picture.css.j2").strip()
    return svg.replace(">", f"><style>{style}</style>", 1).replace('class="', 'class="theodolite ', 1)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        bytecode_cache=_compiled(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters |= {"parted": parted, "badge": badge, "strip": strip}
    return environment


def _compiled() -> BytecodeCache:
    """Compiled templates on disk; jinja is imported where a page is made."""
    from jinja2 import BytecodeCache

    class Compiled(BytecodeCache):
        """Where Python would put the compiled file, and only if it may; a template that has changed is compiled anew."""

        def get_cache_key(self, name: str, filename: str | None = None) -> str:
            """The file itself."""
            return filename or name

        def load_bytecode(self, bucket: Bucket) -> None:
            """What lies there, if it was made of this very text by this version."""
            with contextlib.suppress(OSError, NotImplementedError), open(cache_from_source(bucket.key), "rb") as file:
                bucket.load_bytecode(file)

        def dump_bytecode(self, bucket: Bucket) -> None:
            """Put it there; a folder that may not be written stays as it is."""
            if not sys.dont_write_bytecode:
                with contextlib.suppress(OSError, NotImplementedError):
                    write_atomically(cache_from_source(bucket.key), bucket.bytecode_to_string())

    return Compiled()


@lru_cache(maxsize=8192)
def parted(name: str) -> Markup:
    """A name that may break after its dots and slashes, decimal points excepted."""
    return Markup(_BREAKS.sub(r"\g<0><wbr>", str(escape(printable(name)))))


@lru_cache(maxsize=256)
def badge(status: str, mark: str) -> Markup:
    """A status with its mark."""
    kind = escape(status.replace(" ", "-"))
    return Markup(
        f'<span class="th-badge th-s th-s-{kind}"><span aria-hidden="true">{escape(mark)}</span>{escape(status)}</span>'
    )


def strip(bullet: Bullet | None) -> Markup:
    """Band, interval and value on a strip, drawn by the style sheet; nothing where there is no band.

    An end of the strip is no edge of the band: it is put outside, where it is not drawn.
    """
    if bullet is None:
        return Markup()
    b = bullet
    low, high = b.low if b.low > 0 else -9, b.high if b.high < 100 else 109
    return Markup(
        f'<i class="th-bullet" style="--a:{low:g};--b:{high:g};--c:{b.left:g};--d:{b.right:g};--m:{b.value:g}"></i>'
    )
