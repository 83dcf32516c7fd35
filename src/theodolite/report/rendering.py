"""Templates filled with values: the one place that knows jinja."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.report.words import MARKS, printable

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, **values: Any) -> str:
    """A template with these values; marks are those of readings unless others are given."""
    return _environment().get_template(template).render(**{"marks": MARKS, **values})


def picture_file(svg: str) -> str:
    """A figure as a file of its own: it carries the style that a page would give it, in light."""
    style = rendered("picture.css.j2").strip()
    return svg.replace(">", f"><style>{style}</style>", 1).replace('class="', 'class="theodolite ', 1)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from theodolite.report.compiled import Compiled
    from theodolite.report.filters import badge, parted, strip

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        bytecode_cache=Compiled(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters |= {"parted": parted, "badge": badge, "strip": strip}
    return environment
