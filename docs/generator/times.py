"""The table at the foot of each page "coming from": how long the two snippets took, and what they printed."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "from" / "times.json"


def times_section(page: str) -> str:
    """The table for a page as HTML, from the last run of benchmarks/coming_from.py; empty where there was none."""
    found = json.loads(FILE.read_text(encoding="utf-8")).get(page)
    if found is None:
        return ""
    sides = (found["peer"], found["own"])
    rows = {
        "the whole script": [_seconds(side.get("whole")) for side in sides],
        "again, in the same process": [_seconds(side.get("again")) for side in sides],
        "peak memory": [f"{side['peak']:,.0f} MB" if "peak" in side else "–" for side in sides],
    }
    body = "".join(
        f'<tr><th scope="row">{name}</th>' + "".join(f'<td class="th-num">{cell}</td>' for cell in cells) + "</tr>"
        for name, cells in rows.items()
    )
    heads = "".join(f'<th scope="col" class="th-num">{_versions(side)[0]}</th>' for side in sides)
    printed = "".join(
        f'<h3>Printed by {_versions(side)[0]}</h3><pre tabindex="0">{html.escape(side["printed"].rstrip())}</pre>'
        for side in sides
        if side.get("printed", "").strip()
    )
    return (
        f'<h2 id="times">How long both take</h2><table><thead><tr><td></td>{heads}</tr></thead><tbody>{body}</tbody></table>'
        f"{_troubles(found['peer'])}{printed}{_made(found)}"
    )


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{1e3 * value:.0f} ms" if value < 1 else f"{value:.1f} s"


def _versions(side: dict[str, Any]) -> list[str]:
    return [f"{html.escape(name)} {html.escape(number)}" for name, number in side["versions"].items()]


def _troubles(peer: dict[str, Any]) -> str:
    """Where the peer does not run as published: the first line of its error, and what was done."""
    lines = []
    if "as_published" in peer:
        lines.append(
            f"As published it stops here with <code>{html.escape(peer['as_published'])}</code>; "
            f"it was timed with {html.escape(peer['put_back'])}."
        )
    elif peer["error"]:
        lines.append(f"It does not run here: <code>{html.escape(peer['error'])}</code>.")
    if peer.get("more_ends_in"):
        lines.append(f"Its second snippet ends in <code>{html.escape(peer['more_ends_in'])}</code>.")
    return "".join(f"<p>{line}</p>" for line in lines)


def _made(found: dict[str, Any]) -> str:
    others = [words for side in ("peer", "own") for words in _versions(found[side])[1:]]
    run = f"fresh process{'es' if found['repeats'] > 1 else ''}"
    return (
        f'<p class="th-small th-soft">Both snippets as they stand above, the whole script as the median of {found["repeats"]} '
        f"{run}, imports and start of Python counted. {html.escape(found['machine'])}, Python {found['python']}, "
        f"{', '.join(dict.fromkeys(others))}; {found['date']}. Made by <code>python benchmarks/coming_from.py</code>.</p>"
    )
