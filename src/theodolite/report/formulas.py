r"""Formulas as MathML, which every browser sets itself, in the page's colors and size: TeX in, `math` elements out."""

import re
from functools import lru_cache
from html import escape

from theodolite.core.checks import InputError
from theodolite.report.unicode_math import DOUBLE_STRUCK, FUNCTIONS, SIGNS
from theodolite.report.words import printable

_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_SPACES = {",": ".17em", ":": ".22em", ";": ".28em", " ": ".25em", "quad": "1em", "qquad": "2em", "\\": "1em"}
_SIZES = {"big": "1.2em", "Big": "1.8em", "bigg": "2.4em", "Bigg": "3em"}
_SIZES |= {f"{name}{side}": size for name, size in _SIZES.items() for side in "lrm"}
_THIN = '<mspace width=".17em"/>'
_IGNORED = {"!", "displaystyle", "textstyle", "limits", "nolimits"}
_ACCENTS = {"hat": "^", "widehat": "^", "bar": "¯", "overline": "¯", "tilde": "~", "widetilde": "~"}
_ACCENTS |= {"dot": "˙", "ddot": "¨", "vec": "→"}
_BELOW = {"sum", "prod", "max", "min", "sup", "inf", "lim", "arg"}
"""Signs and functions whose lower script stands below them where there is room."""
_LETTERS = {"ell", "infty", "partial", "nabla", "emptyset", "top", "perp", "star", "ast", "dagger", "prime"}
_OPENING, _CLOSING, _BARS = frozenset("([{⟨⌊⌈"), frozenset(")]}⟩⌋⌉"), frozenset("|‖")
_RELATIONS = frozenset("=≤≥≈∼→⇒∝≠≡")
_MARK = re.compile(r"(?:<ms[a-z]+>)?<mo[^>]*>(.)</mo>")
_WIDE = tuple(f'<mspace width="{width}"/>' for width in ("1em", "2em"))
LONG, SHORT = 9, 3
"""A formula of more parts may break before a sign such as =, where more than a few stand before it."""
_ENDS = (*_CLOSING, *_BARS, "!")


@lru_cache(maxsize=4096)  # the catalogue has a thousand
def formula(tex: str, *, display: bool = False) -> str:
    r"""The formula as a `math` element with TeX as its alternative text; as `code` where it cannot be read.

    >>> formula(r"\frac{1}{2}")
    '<math class="th-formula" alttext="\\frac{1}{2}"><mfrac><mn>1</mn><mn>2</mn></mfrac></math>'
    """
    source = printable(tex).strip().strip("$").strip()
    try:
        if not source or "$" in source:
            raise InputError(f"expected a formula without dollar signs, got {source!r}")
        pieces = _pieces(_Reader(source).whole())
    except ValueError:
        return f'<code class="th-tex">{escape(source)}</code>'
    style = ' displaystyle="true"' if display else ""
    if len(pieces) == 1:
        return f'<math class="th-formula"{style} alttext="{escape(source)}">{pieces[0]}</math>'
    body = " ".join(f"<math{style}>{piece}</math>" for piece in pieces)
    return f'<span class="th-formula" role="math" aria-label="{escape(source)}">{body}</span>'


def prose(text: str) -> str:
    """Text as HTML, with what stands between dollar signs set as a formula."""
    parts = re.split(r"\$([^$\n]+)\$", printable(text))
    return "".join(formula(part) if place % 2 else escape(part) for place, part in enumerate(parts))


class _Reader:
    """Reads TeX from left to right; each method takes what it needs from the tokens that are left."""

    def __init__(self, source: str) -> None:
        self.tokens = _TOKEN.findall(source)[::-1]

    def whole(self) -> list[str]:
        nodes = self.row()
        if self.tokens:
            raise InputError("expected braces in pairs, got a closing one too many")
        return nodes

    def row(self, until: str = "") -> list[str]:
        """Everything up to the token that ends it, which is taken, or up to the end of the formula."""
        found: list[str] = []
        infix = False  # whether a sign that comes now stands behind something that it can join
        while self.tokens and self.tokens[-1] not in (until, "}"):
            token = self.tokens.pop()
            name = token[1:] if token.startswith("\\") else ""
            if token.isspace() or name in _IGNORED:
                continue
            if name == "rm":
                return [*found, _roman(self.upright(until).strip())]
            node = self.scripted(self.atom(token, infix=infix), below=name in _BELOW)
            around = name in FUNCTIONS and not self.next_is("(", "[", "\\left", "}", "")
            found += [*([_THIN] if infix and name in FUNCTIONS else []), node, *([_THIN] if around else [])]
            if not node.startswith("<mspace"):
                infix = not node.startswith(("<mo>", "<mo ")) or any(f">{mark}</mo>" in node for mark in _ENDS)
        if until and (not self.tokens or self.tokens.pop() != until):
            raise InputError(f"expected {until!r}, got the end of the formula")
        return found

    def upright(self, until: str) -> str:
        """The letters up to the brace that closes them, which is taken where one is asked for."""
        words, depth = [], 0
        while self.tokens and (depth or self.tokens[-1] != "}"):
            token = self.tokens.pop()
            depth += (token == "{") - (token == "}")
            words += [] if token in "{}" else [token]
        if until and (not self.tokens or self.tokens.pop() != until):
            raise InputError("expected braces in pairs, got an open one")
        return "".join(words)

    def next_is(self, *tokens: str) -> bool:
        """Whether one of these comes next, spaces aside; the empty one is the end of the formula."""
        while self.tokens and self.tokens[-1].isspace():
            self.tokens.pop()
        return (self.tokens[-1] if self.tokens else "") in tokens

    def argument(self) -> str:
        """The next token, or the group that it opens, as one node."""
        if self.next_is("", "}"):
            raise InputError("expected an argument, got the end of the formula")
        token = self.tokens.pop()
        if token.isdigit() and len(token) > 1:  # TeX takes one digit
            self.tokens.append(token[1:])
            token = token[0]
        return self.atom(token, infix=False)

    def words(self) -> str:
        """The argument of a command that sets letters upright."""
        if self.next_is("", "}"):
            raise InputError("expected words, got the end of the formula")
        token = self.tokens.pop()
        return self.upright("}") if token == "{" else str(token)

    def scripted(self, base: str, *, below: bool) -> str:
        """The base with what stands raised and lowered behind it, primes among it."""
        lower, upper = [], []
        while self.next_is("'", "^", "_"):
            token = self.tokens.pop()
            if token == "_":
                lower.append(self.argument())
            else:
                upper.append("<mo>′</mo>" if token == "'" else self.argument())
        kinds = zip(("under", "over") if below else ("sub", "sup"), (lower, upper), strict=True)
        name = "m" + "".join(kind for kind, scripts in kinds if scripts)
        scripts = "".join(_grouped(own) for own in (lower, upper) if own)
        return f"<{name}>{base}{scripts}</{name}>" if scripts else base

    def atom(self, token: str, *, infix: bool) -> str:
        """One sign, letter, number, group or command with its arguments."""
        if token == "{":
            return _grouped(self.row("}"))
        if token.startswith("\\"):
            return self.command(token[1:].rstrip("*"), infix=infix)
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token in ("&", "#"):
            raise InputError(f"expected a sign, got {token!r}, which stands for something else in TeX")
        if token in ("^", "_"):  # a script of what stands before the formula
            self.tokens.append(token)
            return "<mrow></mrow>"
        return f"<mi>{escape(token)}</mi>" if token.isalpha() else _sign(token, infix=infix)

    def command(self, name: str, *, infix: bool) -> str:
        """A command with its arguments."""
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}"/>'
        if name in ("frac", "tfrac", "dfrac"):
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if name == "binom":
            pair = f'<mfrac linethickness="0">{self.argument()}{self.argument()}</mfrac>'
            return f"<mrow><mo>(</mo>{pair}<mo>)</mo></mrow>"
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name in _ACCENTS:
            wide = "" if name in ("overline", "widehat", "widetilde") else ' stretchy="false"'
            return f'<mover accent="true">{self.argument()}<mo{wide}>{_ACCENTS[name]}</mo></mover>'
        if name == "mathbb":
            letter = self.words()
            return f"<mi>{escape(DOUBLE_STRUCK.get(letter, letter))}</mi>"
        if name in ("mathrm", "text", "operatorname", "textrm", "mathbf", "mathsf"):
            return _roman(self.words())
        if name in ("mathcal", "boldsymbol", "mathit", "bm"):
            return self.argument()
        if name == "left":
            return _grouped([self.fence(), *self.row("\\right"), self.fence()])
        if name in _SIZES:
            return self.fence(f' minsize="{_SIZES[name]}" maxsize="{_SIZES[name]}"')
        if name in FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name not in SIGNS:
            raise InputError(f"expected a command that is known, got {name!r}")
        sign = SIGNS[name]
        if name[0].isupper() and sign.isalpha():
            return f'<mi mathvariant="normal">{sign}</mi>'
        return f"<mi>{sign}</mi>" if sign.isalpha() or name in _LETTERS else _sign(sign, infix=infix)

    def fence(self, size: str = "") -> str:
        """The bracket behind `left`, `right` or a size; as tall as what it stands around unless a size is given."""
        token = self.tokens.pop() if self.tokens else "."
        sign = SIGNS.get(token[1:], token[1:]) if token.startswith("\\") else token
        return "" if sign == "." else f'<mo stretchy="true"{size}>{escape(sign)}</mo>'


def _pieces(nodes: list[str]) -> list[str]:
    """The formula in pieces between which a line may end: at wide spaces, and in a long one before signs such as =."""
    pieces: list[list[str]] = [[]]
    depth = 0
    for node in nodes:
        found = _MARK.match(node)
        mark = found[1] if found else ""
        relation = depth == 0 and mark in _RELATIONS and len(nodes) > LONG and len(pieces[-1]) > SHORT
        if relation or (pieces[-1] and pieces[-1][-1] in _WIDE):
            pieces.append([])
        pieces[-1].append(node)
        depth += (mark in _OPENING) - (mark in _CLOSING)
    return ["".join(piece) for piece in pieces]


def _grouped(nodes: list[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"<mrow>{''.join(nodes)}</mrow>"


def _roman(words: str) -> str:
    """Upright letters: a name, or words with their spaces."""
    plain = re.sub(r"\\([A-Za-z]+|.)", _letter, words)
    if " " in words:
        return f"<mtext>{escape(plain)}</mtext>".replace(" ", "\u00a0")
    return f'<mi mathvariant="normal">{escape(plain)}</mi>'


def _letter(found: re.Match[str]) -> str:
    """The letter or sign that a command within words stands for."""
    sign = SIGNS.get(found[1], " " if found[1] in _SPACES else None)
    if sign is None:
        raise InputError(f"expected letters, got the command {found[0]!r}")
    return sign


def _sign(sign: str, *, infix: bool) -> str:
    """An operator; brackets keep their size, and a sign with nothing before it stands close to what follows."""
    if sign in _OPENING | _CLOSING:
        return f'<mo stretchy="false">{sign}</mo>'
    if sign in _BARS or sign == "/":
        return f'<mo stretchy="false" lspace="0" rspace="0">{sign}</mo>'
    shown = {"-": "−", "*": "∗", "~": "\u00a0"}.get(sign, escape(sign))
    return f'<mo form="prefix">{shown}</mo>' if shown in "−+±∓" and not infix else f"<mo>{shown}</mo>"
