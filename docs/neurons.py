"""Draws docs/neurons.svg: how many units theorems ask for to memorize n points, against n, beside what it takes.

Run by `make docs`, or alone: `python docs/neurons.py`. tests/test_docs.py fails when the picture is not what this file draws.
"""

from __future__ import annotations

import html
import math
from pathlib import Path

from theodolite.theory.capacity import memorization_bounds, theorem_widths

PICTURE = Path(__file__).parent / "neurons.svg"
POINTS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
INPUTS, THETA = 10, 0.5
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 1030, 520, 70, 50, 480, 60
MOST = 1e16  # units; beyond, a line leaves the figure
TITLE = f"Units that memorize n points of {INPUTS} inputs, {THETA} apart; constants and logarithms left out"
COLOURS = ("#b3261e", "#c2571a", "#9a7d0a", "#5b8c2a", "#1f7a5c", "#1f6f9f", "#4a55a8", "#7a3e9d", "#222222")
STYLE = "text{font:13px sans-serif;fill:#222}.small{font-size:12px;fill:#555}.axis{stroke:#999}.grid{stroke:#eee}"


def curves() -> dict[str, list[float]]:
    """The name of each bound, and its units at each number of points."""
    found: dict[str, list[float]] = {}
    for n in POINTS:
        for name, units in memorization_bounds(n, INPUTS, THETA).items():
            found.setdefault(name, []).append(units)
        built = "Yun, Sra, Jadbabaie 2019, two hidden layers: 4 sqrt n"
        found.setdefault(built, []).append(float(sum(theorem_widths(n))))
    return found


def picture() -> str:
    """The figure: both axes logarithmic, a line for each bound, and a broken one for what was measured."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24">{TITLE}</text>',
    ]
    for power in range(0, 17, 4):
        y = _y(10.0**power)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="small" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    bottom = HEIGHT - BOTTOM
    parts += [
        f'<text class="small" x="{_x(n):.1f}" y="{bottom + 20}" text-anchor="middle">{n}</text>'
        for n in (10, 100, 1000, 10_000)
    ]
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    parts.append(f'<text x="{_x(316):.1f}" y="{bottom + 42}" text-anchor="middle">points n</text>')
    ordered = sorted(curves().items(), key=lambda pair: -pair[1][-1])
    for place, (name, units) in enumerate(ordered):
        parts += _line(name, units, COLOURS[place % len(COLOURS)], TOP + 12 + 34 * place)
    seen, last = "seen: least squares on random units, N = n", TOP + 12 + 34 * len(ordered)
    parts += _line(seen, [float(n) for n in POINTS], "#000", last, seen=True)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(name: str, units: list[float], color: str, label: float, seen: bool = False) -> list[str]:
    inside = [(_x(n), _y(u)) for n, u in zip(POINTS, units, strict=True) if 1 <= u <= MOST]
    dash = ' stroke-dasharray="6 4"' if seen else ""
    found = []
    if len(inside) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in inside)
        found.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
    right = WIDTH - RIGHT + 24
    ends = f'x1="{right}" x2="{right + 24}" y1="{label - 4}" y2="{label - 4}"'
    found.append(f'<line {ends} stroke="{color}" stroke-width="2"{dash}/>')
    beyond = "" if len(inside) > 1 else " (beyond the figure)"
    found.append(f'<text class="small" x="{right + 32}" y="{label}">{html.escape(name)}{beyond}</text>')
    return found


def _x(n: float) -> float:
    span = math.log10(POINTS[-1] / POINTS[0])
    return LEFT + (WIDTH - RIGHT - LEFT) * math.log10(n / POINTS[0]) / span


def _y(units: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * math.log10(units) / math.log10(MOST)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"The picture: {PICTURE}")
