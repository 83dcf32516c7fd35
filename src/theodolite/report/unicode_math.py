r"""Formulas as plain letters, for terminals and for who cannot see a picture: TeX in, Unicode out."""

import re
from collections.abc import Iterator

_TABLE = """
alpha α  beta β  gamma γ  delta δ  epsilon ε  varepsilon ε  zeta ζ  eta η  theta θ  vartheta ϑ  iota ι  kappa κ
lambda λ  mu μ  nu ν  xi ξ  pi π  rho ρ  sigma σ  tau τ  upsilon υ  phi φ  varphi φ  chi χ  psi ψ  omega ω  Gamma Γ
Delta Δ  Theta Θ  Lambda Λ  Xi Ξ  Pi Π  Sigma Σ  Upsilon Υ  Phi Φ  Psi Ψ  Omega Ω  ell ℓ  leq ≤  le ≤  geq ≥  ge ≥
neq ≠  ne ≠  approx ≈  sim ∼  simeq ≃  propto ∝  to →  rightarrow →  leftarrow ←  Rightarrow ⇒  mapsto ↦  infty ∞
partial ∂  nabla ∇  cdot ·  times ×  pm ±  mp ∓  in ∈  notin ∉  subset ⊂  subseteq ⊆  cup ∪  cap ∩  sum ∑  prod ∏
int ∫  langle ⟨  rangle ⟩  lVert ‖  rVert ‖  Vert ‖  lvert |  rvert |  vert |  mid |  perp ⊥  parallel ∥  ll ≪  gg ≫
equiv ≡  odot ⊙  circ ∘  oplus ⊕  otimes ⊗  forall ∀  exists ∃  star ⋆  ast ∗  dots …  ldots …  cdots ⋯  lfloor ⌊
rfloor ⌋  lceil ⌈  rceil ⌉  top ⊤  dagger †  prime ′  uparrow ↑  downarrow ↓  iff ⇔  succeq ⪰  preceq ⪯  asymp ≍
colon :  setminus ∖  emptyset ∅  wedge ∧  vee ∨  lesssim ≲  gtrsim ≳
"""
_BARE = """
left right big Big bigg Bigg bigl bigr Bigl Bigr displaystyle textstyle limits nolimits mathrm mathbf mathcal text
operatorname boldsymbol mathit mathsf textrm bm
"""
_SPACED = """ln log exp cos sin tanh sinh arccos arcsinh max min arg inf sup det tr
arctan arcsin cosh dim ker lim Pr"""
_words = _TABLE.split()
SIGNS = {**dict(zip(_words[::2], _words[1::2], strict=True)), "|": "‖", **{sign: sign for sign in "{}%_&#"}}
"""The sign of each command that stands for one."""
_NAMES = {**SIGNS, "quad": "  ", "qquad": "   ", "!": "", "backslash": "\\", **dict.fromkeys(",;: \\", " ")}
_DROPPED, FUNCTIONS = frozenset(_BARE.split()), frozenset(_SPACED.split())
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "dot": "\u0307", "ddot": "\u0308", "vec": "\u20d7"}
_ACCENTS |= {"widehat": "\u0302", "widetilde": "\u0303", "overline": "\u0304"}
DOUBLE_STRUCK = {"E": "𝔼", "R": "ℝ", "P": "ℙ", "N": "ℕ", "Z": "ℤ", "C": "ℂ", "1": "𝟙"}
_RAISED = str.maketrans(
    "0123456789+-=()nijklmabcdetxyprs*−⊤ABDEGHIJKLMNOPRTUVW", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱʲᵏˡᵐᵃᵇᶜᵈᵉᵗˣʸᵖʳˢ*⁻ᵀᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂ"
)
_LOWERED = str.maketrans("0123456789+-=()aeijklmnoprstuvx−", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ₋")
_CAN_RAISE, _CAN_LOWER = set(map(chr, _RAISED)), set(map(chr, _LOWERED))
_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|[{}^_]|\s+|.", re.DOTALL)


def unicode_formula(tex: str) -> str:
    r"""The formula in letters and signs that any terminal shows.

    >>> unicode_formula(r"\lambda_{\max}\to(1+\sqrt{p/n})^2")
    'λₘₐₓ → (1 + √(p/n))²'
    >>> unicode_formula(r"K_{\ell+1}=C_b+C_w\,\langle\sigma^2\rangle_K")
    'K_(ℓ + 1) = C_b + C_w ⟨σ²⟩_K'
    """
    source = tex.strip().strip("$")
    text = "".join(_Tokens(source))
    text = re.sub(r"\s*([=≤≥≈∼≃∝→⇒≠≡≪≫⪰⪯≍∈])\s*", r" \1 ", text)
    text = re.sub(r"(?<=[\w)\]⟩²³*])\s*\+\s*(?=[\w(\[⟨√∑∏∂∇½|‖])", " + ", text)
    text = re.sub(r"(?<=[(\[⟨|‖½]) (?![=≤≥≈∼≃∝→⇒≠≡≪≫⪰⪯≍∈])| (?=[)\],;:⟩|‖^_₀-₉/])", "", text)
    text = re.sub(r"([a-z]{2}) (?=[(^_²³⁰-⁹₀-ₜ])", r"\1", text)
    return re.sub(r"\s{2,}", " ", text).strip()


def unicode_prose(text: str) -> str:
    """The text with what stands between dollar signs turned into letters, and small scripts elsewhere too.

    >>> unicode_prose("grows as $n^{-1/2}$, at last")
    'grows as n^(-1/2), at last'
    >>> unicode_prose("the constant is 12/n_0^2 of 2^L; C_w and a_name stay")
    'the constant is 12/n₀² of 2ᴸ; C_w and a_name stay'
    """
    parts = re.split(r"\$([^$\n]+)\$", text)
    return "".join(unicode_formula(part) if place % 2 else _scripts(part) for place, part in enumerate(parts))


def _scripts(text: str) -> str:
    """Plain text whose raised and lowered numbers and letters are small."""
    text = re.sub(r"(?<![A-Za-z_])([A-Za-z])_(\d)(?!\w)", lambda found: found[1] + _script("_", found[2]), text)
    return re.sub(r"(?<=[\w)|>*])\^(\d+|[A-Za-z])(?!\w)", lambda found: _script("^", found[1]), text)


class _Tokens:
    """The tokens of a formula; `group` takes what the next command or script applies to."""

    def __init__(self, source: str) -> None:
        self.found = _TOKEN.findall(source)
        self.place = 0

    def __iter__(self) -> Iterator[str]:
        while self.place < len(self.found):
            self.place += 1
            yield self._signs_of(self.found[self.place - 1])

    def _signs_of(self, token: str) -> str:
        if token in "^_":
            return _script(token, self.group())
        if token == "{":
            return "".join(self._until_closed())
        if token.startswith("\\"):
            return self._command(token[1:].rstrip("*"))
        return "" if token == "}" else " " if token.isspace() else token

    def _command(self, name: str) -> str:
        if name in _NAMES:
            return _NAMES[name]
        if name in ("frac", "tfrac", "dfrac"):
            over, under = self.group(), self.group()
            return {("1", "2"): "½", ("1", "4"): "¼"}.get((over, under), f"{_tied(over)}/{_divisor(under)} ")
        if name == "binom":
            return f"({self.group()} choose {self.group()})"
        if name == "sqrt":
            return f"√{_tied(self.group(), always=True)}"
        if name in _ACCENTS:
            return self.group() + _ACCENTS[name]
        if name == "mathbb":
            inner = self.group()
            return DOUBLE_STRUCK.get(inner, inner)
        if name in ("begin", "end"):
            self.group()
            return " "
        if name in FUNCTIONS and self._fraction_follows():  # exp a/b would be read as (exp a)/b
            return f" {name}({self.group().strip()}) "
        return "" if name in _DROPPED else f" {name} " if name in FUNCTIONS else name

    def _fraction_follows(self) -> bool:
        return self.place < len(self.found) and self.found[self.place] in ("\\frac", "\\tfrac", "\\dfrac")

    def group(self) -> str:
        """The next token, or all of the braces that it opens."""
        while self.place < len(self.found) and self.found[self.place].isspace():
            self.place += 1
        if self.place >= len(self.found):
            return ""
        self.place += 1
        return self._signs_of(self.found[self.place - 1])

    def _until_closed(self) -> Iterator[str]:
        while self.place < len(self.found):
            token = self.found[self.place]
            self.place += 1
            if token == "}":
                return
            yield self._signs_of(token)


def _script(kind: str, text: str) -> str:
    """A sub- or superscript: small letters where Unicode has them all, else with its sign."""
    text = text.strip()
    if not text:
        return ""
    can, table = (_CAN_RAISE, _RAISED) if kind == "^" else (_CAN_LOWER, _LOWERED)
    if len(text) <= 3 and set(text) <= can:
        return text.translate(table)
    return kind + _tied(text)


def _divisor(text: str) -> str:
    """In brackets, unless it is one number, one letter with its scripts, or in brackets already.

    >>> _divisor("n₀"), _divisor("2n")
    ('n₀', '(2n)')
    """
    single = re.fullmatch(r"\d+|[^\W\d_][⁰-⁹²³₀-ₜᵢ-ᵥⱼ]*|\([^()]*\)", text.strip())
    return text if single else f"({text})"


def _tied(text: str, *, always: bool = False) -> str:
    """In brackets, unless it is one word."""
    whole = len(text) == 1 or (re.fullmatch(r"\w+[⁰-⁹²³]*", text) and not always)
    return text if whole else f"({text})"
