"""Points in a plane, colored by their class where they have one."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.report.curves import MARKERS
from theodolite.report.svg import GROUPS, INK, drawing, inline_svg

MOST_CLASSES = 12


def scatter_figure(
    places: Sequence[tuple[float, float]], labels: Sequence[str] = (), *, spoken: str, key: str = ""
) -> str:
    """The points as an inline SVG; up to a dozen classes get a color and a mark each."""
    names = sorted(set(labels), key=lambda name: (len(name), name))
    told = names if len(labels) == len(places) and 1 < len(names) <= MOST_CLASSES else [""]
    with drawing(width=430, height=330) as (figure, axes):
        for place, name in enumerate(told):
            own = [pair for pair, label in zip(places, labels, strict=True) if label == name] if name else list(places)
            axes.scatter(
                [x for x, _ in own],
                [y for _, y in own],
                s=11,
                linewidths=0,
                alpha=0.75,
                label=name,
                marker=MARKERS[place // len(GROUPS)],
                color=GROUPS[place % len(GROUPS)] if name else INK,
            )
        axes.set_xticks([])
        axes.set_yticks([])
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        axes.set_aspect("equal", adjustable="datalim")
        if len(told) > 1:
            figure.legend(loc="outside upper left", ncols=6, markerscale=1.8)
        return inline_svg(figure, spoken, key=key)
