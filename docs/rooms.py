"""Draws docs/design/rooms.svg from the code as it is: the rooms, what each may import, and what it does import.

Run by `make docs`, or alone: `python docs/rooms.py`. The floors are the layers that import-linter checks (pyproject.toml),
the dots are the import statements of the files. tests/test_docs.py fails when the picture is not what this file draws.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "theodolite"
PICTURE = HERE / "design" / "rooms.svg"
WHAT = {
    "cli": "the command line",
    "arguments": "what can be typed there",
    "testing": "a network that is sick fails people's own tests",
    "integrations": "callbacks for other people's training loops",
    "verbs": "what people do: survey, watch, design, check, ...",
    "report": "PRESENT: text, pages, figures; computes nothing",
    "catalogue": "finds laws and instruments by their files",
    "laws": "one file a theorem",
    "instruments": "one file a question",
    "ailments": "one file a way to fail",
    "evidence": "what is known of a subject: task, signals, trials",
    "construct": "BUILD: networks and data with a known answer",
    "bayes": "exact posteriors of deep linear networks",
    "theory": "PREDICT: numbers to numbers; never sees a model",
    "measure": "MEASURE: models and data to numbers; no theory",
    "core": "the nouns, and what guards them",
    "io": "checkpoints, batches, files, workers",
    "optim": "multiplicative updates as optimizers",
    "nn": "layers with multiplicative updates",
}
BY_FILE = ("laws", "instruments", "ailments", "theory/nonlinearities")  # a new file here changes no picture

ROW, LEFT, COUNT, CELL, TOP = 28, 24, 500, 30, 150
STYLE = """
svg { --ground: #ffffff; --ink: #1c2733; --soft: #5b6875; --may: #e3ecf6; --does: #2f6fb7; --rule: #c9d1d9 }
@media (prefers-color-scheme: dark) {
  svg { --ground: #0f151c; --ink: #e6ebf0; --soft: #9aa7b4; --may: #1f3042; --does: #7fb3ee; --rule: #37424e } }
text { font: 13px system-ui, sans-serif; fill: var(--ink) } .name { font: 600 13px ui-monospace, monospace }
.soft { fill: var(--soft) } .may { fill: var(--may) } .does { fill: var(--does) } .rule { stroke: var(--rule) }
.ground { fill: var(--ground) }"""


def floors() -> list[tuple[list[str], bool]]:
    """The rooms of each layer from the top, and whether those of one layer may import each other."""
    contracts = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    lines = next(contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers")
    there = {path.stem for path in PACKAGE.iterdir()}
    found = [([room for room in re.findall(r"\w+", line) if room in there], ":" in line) for line in lines]
    return [floor for floor in found if floor[0]]


def room_of(path: Path) -> str:
    """The room that a file lies in; how the package starts belongs to the command line."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "cli" if first == "__main__" else first


@functools.cache
def imports() -> set[tuple[str, str]]:
    """Who imports whom, room by room, by every import statement, also those inside functions."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" for name in names]
            rooms = {name.split(".")[1] for name in names if name.startswith("theodolite.")}
            found |= {(room_of(path), room) for room in rooms & WHAT.keys()}
    return {(one, other) for one, other in found if one != other and one != "__init__"}


def modules(room: str) -> str:
    """How many modules a room has; empty where files are found by their names, since those come and go."""
    if room in BY_FILE:
        return ""
    files = [path for path in PACKAGE.rglob("*.py") if room_of(path) == room and path.name != "__init__.py"]
    return str(sum(str(path.parent.relative_to(PACKAGE)) not in BY_FILE for path in files))


def picture() -> str:
    """The rooms as rows and columns: shaded where the row may import the column, a dot where it does."""
    layers, does = floors(), imports()
    rooms = [(room, depth) for depth, (names, _) in enumerate(layers) for room in names]
    grid, width = COUNT + 30, COUNT + 30 + CELL * len(rooms) + 20
    middle = [TOP + ROW * row + 10 * depth + ROW / 2 for row, (_, depth) in enumerate(rooms)]
    across = [grid + CELL * column + CELL / 2 for column in range(len(rooms))]
    height = round(middle[-1] + ROW / 2 + 44)
    marks = [f'<text class="soft" x="{COUNT}" y="{TOP - 12}" text-anchor="end">modules</text>']
    for (room, depth), y, x in zip(rooms, middle, across, strict=True):
        marks.append(f'<text class="name" x="{LEFT}" y="{y + 4:g}">{room}</text>')
        marks.append(f'<text class="soft" x="{LEFT + 105}" y="{y + 4:g}">{WHAT[room]}</text>')
        marks.append(f'<text class="soft" x="{COUNT}" y="{y + 4:g}" text-anchor="end">{modules(room)}</text>')
        marks.append(f'<text class="name" transform="translate({x + 4:g} {TOP - 12}) rotate(-60)">{room}</text>')
        for (other, below), along in zip(rooms, across, strict=True):
            if below > depth or (below == depth and layers[depth][1] and other != room):
                box = f'x="{along - CELL / 2 + 1:g}" y="{y - ROW / 2 + 1:g}" width="{CELL - 2}" height="{ROW - 2}"'
                marks.append(f'<rect class="may" {box} rx="3"/>')
            if (room, other) in does:
                marks.append(f'<circle class="does" cx="{along:g}" cy="{y:g}" r="6"/>')
    for depth in range(1, len(layers)):
        y = next(y for (_, own), y in zip(rooms, middle, strict=True) if own == depth) - ROW / 2 - 5
        marks.append(f'<line class="rule" x1="{LEFT}" x2="{width - 20}" y1="{y:g}" y2="{y:g}"/>')
    key = f'<circle class="does" cx="{LEFT + 6}" cy="{height - 20}" r="6"/>'
    key += f'<text class="soft" x="{LEFT + 20}" y="{height - 16}">the row imports the column</text>'
    key += f'<rect class="may" x="{LEFT + 220}" y="{height - 33}" width="{CELL - 2}" height="{ROW - 2}" rx="3"/>'
    key += f'<text class="soft" x="{LEFT + 258}" y="{height - 16}">it may</text>'
    title = f'<text x="{LEFT}" y="40" style="font-size: 17px">Who may import whom, and who does</text>'
    said = f'<text class="soft" x="{LEFT}" y="64">Higher may import lower; theory and measure never meet.</text>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-label="The rooms of the package: what each may import and what it does import">',
            f'<style>{STYLE}</style><rect class="ground" width="100%" height="100%"/>',
            title,
            said,
            *marks,
            key,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"The picture: {PICTURE}")
