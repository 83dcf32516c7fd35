"""Matplotlib drawings as inline SVG that takes its colors from the page."""

from __future__ import annotations

import hashlib
import io
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, LINE, THEORY, WRONG = "#010101", "#020202", "#030303", "#040404"
GROUPS = tuple(f"#0505{place:02x}" for place in range(6))
"""Sentinel colors: drawn with, then replaced by the page's own, so that a figure follows light and dark."""

_PAGE = {
    INK: "currentColor",
    LINE: "var(--th-rule, #8c96a0)",
    THEORY: "var(--th-theory, #2f6fb7)",
    WRONG: "var(--th-wrong, #c23b22)",
    **{color: f"var(--th-group{place}, #44546a)" for place, color in enumerate(GROUPS)},
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 12,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "figure.constrained_layout.use": True,
}
_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"^#([\w-]+)$|url\(#([\w-]+)\)")
_FONT = re.compile(r"font:\s*(?:[a-z]+\s+)*([\d.]+px)[^;]*")


@contextmanager
def drawing(width: float = 430, height: float = 275) -> Iterator[tuple[Figure, Axes]]:
    """A figure and its axes, in points, under the report's own style; the caller's settings are left as they were."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph|constrained_layout not applied", category=UserWarning)
        warnings.filterwarnings("ignore", message="overflow", category=RuntimeWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(width / 72, height / 72))
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        yield figure, axes


def inline_svg(figure: Figure, label: str, *, key: str = "") -> str:
    """The figure as an `svg` element for a page; call it within `drawing`. Different keys give different ids."""
    import matplotlib

    salt = hashlib.sha256(f"{key}\0{label}".encode("utf-8", "replace")).hexdigest()[:8]
    matplotlib.rcParams["svg.hashsalt"] = salt
    page = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(page, format="svg", transparent=True, metadata=nothing)
    root = ElementTree.fromstring(page.getvalue())
    for node in root.iter():
        _tidy(node)
    _prune(root)
    _name_ids(root, "f" + hashlib.sha256(page.getvalue() + salt.encode()).hexdigest()[:8])
    box = root.attrib["viewBox"]
    root.attrib = {"class": "th-figure", "xmlns": "http://www.w3.org/2000/svg", "viewBox": box, "role": "img"}
    root.attrib |= {"aria-label": label, "width": "100%", "style": f"max-width:{_wide(box)}px;height:auto"}
    return ElementTree.tostring(root, encoding="unicode")


def _wide(box: str) -> int:
    return math.ceil(float(box.split()[2]) * 1.32)


def _tidy(node: Any) -> None:
    node.tag = node.tag.partition("}")[2]
    node.attrib = {name.rpartition("}")[2]: value for name, value in node.attrib.items()}
    for name in ("d", "x", "y", "transform", "points", "width", "height"):
        if name in node.attrib:
            node.attrib[name] = _NUMBER.sub(_rounded, " ".join(node.attrib[name].split()))
    if "style" in node.attrib:
        style = re.sub(r"#0[0-9a-f]{5}", lambda found: _PAGE.get(found[0], found[0]), node.attrib["style"])
        style = _FONT.sub(r"font-size:\1", style)
        node.attrib["style"] = re.sub(r"([:;])\s+", r"\1", style)
    if node.tag != "text":
        node.text = None
    node.tail = None


def _prune(root: Any) -> None:
    used = {found for node in root.iter() for value in node.attrib.values() for found in _references(value)}
    for node in root.iter():
        if node.attrib.get("id") not in used:
            node.attrib.pop("id", None)
    for parent in list(root.iter()):
        kept: list[Any] = []
        for child in parent:
            kept += _unwrapped(child)
        parent[:] = kept


def _unwrapped(node: Any) -> list[Any]:
    if node.tag in ("metadata", "style") or (node.tag in ("g", "defs") and len(node) == 0):
        return []
    if node.tag == "defs" and all(child.tag == "style" for child in node):
        return []
    if node.tag == "g" and not node.attrib:
        return [inner for child in node for inner in _unwrapped(child)]
    return [node]


def _name_ids(root: Any, prefix: str) -> None:
    names = {node.attrib["id"]: f"{prefix}-{place}" for place, node in enumerate(root.iter()) if "id" in node.attrib}
    for node in root.iter():
        for name, value in node.attrib.items():
            if name == "id":
                node.attrib[name] = names[value]
            elif found := _references(value):
                node.attrib[name] = value.replace(found[0], names.get(found[0], found[0]))


def _references(value: str) -> list[str]:
    return [whole or inner for whole, inner in _REFERENCE.findall(value)]


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
