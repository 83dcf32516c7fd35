"""Shapes as SVG text. They carry class names and no colors: the style sheet knows light, dark and paper."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from theodolite.report.words import printable

LETTER = 6.0
"""How wide a letter of the small print is taken to be, in the units of a figure."""

GROUPS = 6
"""So many colors tell groups apart; their classes are th-c0, th-c1 and so on."""

MARKERS: tuple[str, ...] = ("h0", "m-2.3-2.3h4.6v4.6h-4.6z", "m0-3.2l3 3.2l-3 3.2l-3-3.2z", "m0-2.9l3.1 5.2h-6.2z")
MARKERS += ("m0 2.9l3.1-5.2h-6.2z", "m-1-3h2v2h2v2h-2v2h-2v-2h-2v-2h2z")
"""Disk, square, diamond, triangles and cross about a point; the disk is a stroke without length whose ends are round."""

Point = tuple[float, float]


def group_color(group: int) -> str:
    """The color of a group; the ink where there is only one, whose number is -1."""
    return f"c{group % GROUPS}" if group >= 0 else "ink"


def path(d: str, kind: str, color: str = "", title: str = "") -> str:
    """A path of a kind (line, area, axis, ...) in a color (ink, theory, wrong, c0 to c5); nothing where it is empty."""
    if not d:
        return ""
    names = " ".join(f"th-g-{name}" for name in kind.split()) + (f" th-{color}" if color not in ("", "ink") else "")
    inner = f"><title>{escape(printable(title))}</title></path>" if title else "/>"
    return f'<path class="{names}" d="{d}"{inner}'


def joined(points: Iterable[Point]) -> str:
    """Straight from point to point; empty where there are fewer than two.

    >>> joined([(0.0, 1.0), (2.25, 3.0)]), joined([(0.0, 1.0)])
    ('M0,1L2.2,3', '')
    """
    places = [f"{short(x)},{short(y)}" for x, y in points]
    return "M" + "L".join(places) if len(places) > 1 else ""


def markers(points: Iterable[Point], group: int = -1) -> str:
    """A mark at each point, all in one path; a dozen groups differ by color or shape."""
    shape = (group + group // GROUPS) % len(MARKERS) if group >= 0 else 0
    d = "".join(f"M{short(x)},{short(y)}{MARKERS[shape]}" for x, y in points)
    return path(d, "mark" if shape else "dot", group_color(group))


def text(x: float, y: float, words: str, kind: str = "", *, color: str = "", turned: float = 0) -> str:
    """Words at a place; the kind names classes such as title, end or middle."""
    names = [f"th-g-{name}" for name in kind.split()] + ([f"th-{color}"] if color not in ("", "ink") else [])
    about = f' class="{" ".join(names)}"' if names else ""
    turn = f' transform="rotate({turned:g} {short(x)} {short(y)})"' if turned else ""
    return f'<text x="{short(x)}" y="{short(y)}"{about}{turn}>{escape(printable(words))}</text>'


def picture(parts: Iterable[str], size: Point, spoken: str, kind: str = "th-figure", *, enlarged: float = 0) -> str:
    """The `svg` element, read aloud as ``spoken``; ``enlarged`` says how many times its own size it may become."""
    wide, tall = size
    style = f' style="max-width:{math.ceil(wide * enlarged)}px"' if enlarged else ""
    return (
        f'<svg class="{kind}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {tall:.0f}" role="img" '
        f'aria-label="{escape(printable(spoken))}"{style}>{"".join(parts)}</svg>'
    )


def flowing(widths: Sequence[float], left: float, right: float) -> list[tuple[float, int]]:
    """Where things of these widths stand in lines between two ends: from where, and in which line.

    >>> flowing([30, 30, 60], 0, 70)
    [(0, 0), (30, 0), (0, 1)]
    """
    found, x, line = [], left, 0
    for width in widths:
        if x > left and x + width > right:
            x, line = left, line + 1
        found.append((x, line))
        x += width
    return found


def short(value: float) -> str:
    """A number with one digit behind the point, none where it is zero.

    >>> short(2.04), short(-0.01)
    ('2', '0')
    """
    words = f"{value:.1f}".removesuffix(".0")
    return "0" if words == "-0" else words
