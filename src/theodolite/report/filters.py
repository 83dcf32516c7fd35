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
    """Band, interval and value on a strip; nothing where there is no band."""
    if bullet is None:
        return Markup()
    b = bullet
    parts = ['<svg class="th-bullet" aria-hidden="true"><line class="th-axis" x1="0" x2="100%" y1="50%" y2="50%"/>']
    if b.high - b.low > 1:
        width = round(b.high - b.low, 2)
        parts.append(f'<rect class="th-band" x="{b.low}%" width="{width}%" y="10%" height="80%"/>')
    edges = [b.low] * (b.low > 0) + [b.high] * (b.low < b.high < 100)
    parts += [f'<line class="th-edge" x1="{edge}%" x2="{edge}%" y1="10%" y2="90%"/>' for edge in edges]
    if b.right > b.left:
        parts.append(f'<line class="th-interval" x1="{b.left}%" x2="{b.right}%" y1="50%" y2="50%"/>')
    parts.append(f'<circle class="th-dot" cx="{b.value}%" cy="50%" r="3.5"/></svg>')
    return Markup("".join(parts))
