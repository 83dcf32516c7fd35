"""Formulas as inline SVG that sits in a line of text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from typing import Any

from theodolite.core.checks import InputError
from theodolite.report.words import printable

_SIZE = 100.0
_SAME = (
    (r"([_^])\*", r"\1{*}"),
    (r"\\[td]frac(?![a-zA-Z])", r"\\frac"),
    (r"\\(?:big|Big|bigg|Bigg)[lrm]?(?![a-zA-Z])", ""),
    (r"\\[lr]Vert(?![a-zA-Z])", r"\\|"),
    (r"\\[lr]vert(?![a-zA-Z])", "|"),
    (r"\\operatorname\*?\{([^{}]*)\}", r"\\mathrm{\1}\\,"),
    (r"\\(?:le)(?![a-zA-Z])", r"\\leq"),
    (r"\\(?:ge)(?![a-zA-Z])", r"\\geq"),
    (r"\\(?:ne)(?![a-zA-Z])", r"\\neq"),
    (r"\\to(?![a-zA-Z])", r"\\rightarrow"),
    (r"\\iff(?![a-zA-Z])", r"\\;\\Leftrightarrow\\;"),
    (r"\\!", ""),
    (r"\\&", r"\\wedge "),
    (r"\\(?:displaystyle|limits)(?![a-zA-Z])", ""),
)
_ARGUMENTS = {"frac": 2, "tfrac": 2, "dfrac": 2, "binom": 2, "sqrt": 1, "mathbb": 1, "mathrm": 1, "text": 1}
_ARGUMENTS |= dict.fromkeys(("hat", "bar", "tilde", "dot", "ddot", "vec", "overline", "widehat", "widetilde"), 1)
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}]|\s+|.", re.DOTALL)
_LETTERS = {1: "m", 2: "l", 3: "q", 4: "c"}


@lru_cache(maxsize=4096)  # the catalogue has a thousand
def formula(tex: str) -> str:
    """The formula as an `svg` element measured in em, TeX in its label; as `code` where it cannot be drawn."""
    source = printable(tex).strip().strip("$").strip()
    try:
        return _svg(source)
    except (ValueError, KeyError, RuntimeError, UserWarning):
        return f'<code class="th-tex">{escape(source)}</code>'


def prose(text: str) -> str:
    """Text as HTML, with what stands between dollar signs set as a formula."""
    parts = re.split(r"\$([^$\n]+)\$", printable(text))
    return "".join(formula(part) if place % 2 else escape(part) for place, part in enumerate(parts))


def _svg(source: str) -> str:
    if not source or "$" in source:
        raise InputError(f"expected a formula without dollar signs, got {source!r}")
    import matplotlib
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath, text_to_path

    readable = _braced(iter(_TOKEN.findall(source)))
    for pattern, plain in _SAME:
        readable = re.sub(pattern, plain, readable)
    readable = f"${' '.join(readable.split())}$"
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        warnings.simplefilter("error", UserWarning)
        font = FontProperties(size=_SIZE, math_fontfamily="stix")
        # the parser that TextPath asks too, at the size it asks for: the second answer is a kept one
        size: Any = text_to_path.mathtext_parser.parse(readable, dpi=text_to_path.DPI, prop=font)
        outline = _outline(TextPath((0, 0), readable, size=_SIZE, prop=font))
    width, height, depth = (float(size[place]) for place in range(3))
    if not outline:
        raise InputError(f"expected a formula with something to draw, got {source!r}")
    label, rise = escape(source), 4.0
    tall, low = height + 2 * rise, depth + rise
    return (
        f'<svg class="th-formula" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'viewBox="0 {-tall + low:.0f} {width + 4:.0f} {tall:.0f}" style="width:{(width + 4) / _SIZE:.3f}em;'
        f'height:{tall / _SIZE:.3f}em;vertical-align:{-low / _SIZE:.3f}em"><title>{label}</title>'
        f'<path fill="currentColor" d="{outline}"/></svg>'
    )


def _braced(tokens: Iterator[str], most: int = -1) -> str:
    """The formula with braces about every argument, which TeX may leave out and the drawing needs; ``most`` ends it."""
    out: list[str] = []
    for token in tokens:
        if token == "}":
            break
        if token == "{":
            out.append("{" + _braced(tokens) + "}")
        elif token in ("\\text", "\\mathrm"):
            words = _braced(tokens, 1)
            out.append("\\mathrm{" + re.sub(r"(?<!\\) +", r"\\ ", words.removeprefix("{").removesuffix("}")) + "}")
        else:
            out.append(token)
            for _ in range(_ARGUMENTS.get(token[1:], 0) if token.startswith("\\") else 0):
                argument = _braced(tokens, 1)
                out.append(argument if argument.startswith("{") else "{" + argument + "}")
        if most > 0 and not token.isspace():
            break
    return "".join(out)


def _outline(path: Any) -> str:
    """The path in whole hundredths of an em, each point told from the one before: as short as it can be said."""
    parts: list[str] = []
    here = start = (0, 0)
    for points, code in path.iter_segments(simplify=False, curves=True):
        if code not in _LETTERS:
            parts.append("z")
            here = start
            continue
        places = [(round(x), round(-y)) for x, y in zip(points[::2], points[1::2], strict=True)]
        steps = " ".join(f"{x - here[0]} {y - here[1]}" for x, y in places)
        parts.append(_LETTERS[int(code)] + steps.replace(" -", "-"))
        here = places[-1]
        start = here if int(code) == 1 else start
    return "".join(parts)
