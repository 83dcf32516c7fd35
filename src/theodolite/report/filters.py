"""Small pieces of a page that stand in every row: written here, since a page of thousands of rows calls for each of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from theodolite.report.words import printable

if TYPE_CHECKING:
    from theodolite.report.views import Bullet

_BREAKS = re.compile(r"(?<!\d)[./]|[./](?!\d)")


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
