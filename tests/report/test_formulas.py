"""Formulas: MathML with the structure that the TeX says, or the TeX itself; nothing a user wrote runs."""

from xml.etree import ElementTree

import pytest

from theodolite import catalogue
from theodolite.report.formulas import formula, prose


def shape(node):
    """A formula as nested words: the kind of each element, and what it shows."""
    inner = " ".join(map(shape, node))
    return f"{node.tag[1:]}({inner})" if len(node) else node.text or "space"


def read(tex):
    root = ElementTree.fromstring(formula(tex))
    if root.tag == "span":
        assert root.attrib["role"] == "math" and root.attrib["aria-label"] == tex
        return " ".join(shape(node) for piece in root for node in piece)
    assert root.tag == "math" and root.attrib["alttext"] == tex
    return " ".join(map(shape, root))


@pytest.mark.parametrize(
    ("tex", "structure"),
    [
        (r"\lambda_{\max}\to(1+\sqrt{p/n})^2", "sub(λ max) → ( 1 + sqrt(row(p / n)) sup() 2)"),
        (r"K^*=\tfrac{3+\sqrt{17}}{2}", "sup(K ∗) = frac(row(3 + sqrt(17)) 2)"),
        (r"\frac12x_0^2", "frac(1 2) subsup(x 0 2)"),
        (r"\lVert x\rVert_2\le 1", "‖ x sub(‖ 2) ≤ 1"),
        (r"\mathbb{E}[z^2]", "𝔼 [ sup(z 2) ]"),
        (r"\operatorname{tr} H=\sum_i \lambda_i", "tr H = under(∑ i) sub(λ i)"),
        (r"\sum_{i=1}^n a", "underover(∑ row(i = 1) n) a"),
        (r"\text{if } x", "if\u00a0 x"),
        (r"f'(x)", "sup(f ′) ( x )"),
        (r"\left(\frac{a}{b}\right)", "row(( frac(a b) ))"),
        (r"{\rm rank}\,W", "rank space W"),
        (r"\hat{x}", "over(x ^)"),
        (r"\binom{n}{k}", "row(( frac(n k) ))"),
        (r"2\ln x", "2 space ln space x"),
        (r"\exp(x)", "exp ( x )"),
        (r"\mathrm{d\theta}", "dθ"),
        ("^2", "sup(space 2)"),
    ],
)
def test_a_formula_has_the_structure_of_its_tex(tex, structure):
    assert read(tex) == structure


ARITY = dict.fromkeys(("msub", "msup", "mfrac", "munder", "mover"), 2) | {"msubsup": 3, "munderover": 3}


def test_every_formula_of_the_catalogue_has_as_many_parts_as_its_elements_take():
    texts = [catalogue.law(name).formula for name in catalogue.law_names()]
    assert len(texts) > 100
    for tex in texts:
        root = ElementTree.fromstring(formula(tex))
        for node in root.iter():
            assert len(node) == ARITY.get(node.tag, len(node)), (tex, node.tag)
            assert node.tag in ("span", "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msqrt", *ARITY), node.tag
            assert not (node.text and len(node)) and not (node.tail or "").strip()


def test_a_sign_before_a_number_stands_close_and_one_between_two_apart():
    signs = [node for node in ElementTree.fromstring(formula("-1-(-2)=-x")).iter("mo") if node.text == "−"]
    assert [node.get("form") for node in signs] == ["prefix", None, "prefix", "prefix"]
    (minus,) = (node for node in ElementTree.fromstring(formula(r"\hat x-y")).iter("mo") if node.text == "−")
    assert minus.get("form") is None


def test_only_brackets_that_ask_for_it_grow():
    plain, grown = formula(r"(\frac ab)"), formula(r"\left(\frac ab\right)")
    assert plain.count('stretchy="false"') == 2 and grown.count('stretchy="true"') == 2


def test_a_long_formula_may_break_at_wide_spaces_and_before_relations_but_not_within_brackets():
    def pieces(tex):
        root = ElementTree.fromstring(formula(tex))
        return [" ".join(map(shape, piece)) for piece in root] if root.tag == "span" else 1

    assert pieces("a=b") == 1
    assert pieces(r"a=b,\qquad c=d") == ["a = b , space", "c = d"]
    assert pieces("P(x=0)+Q(y=1)=a+b") == ["P ( x = 0 ) + Q ( y = 1 )", "= a + b"]


def test_limits_stand_below_where_there_is_room():
    assert 'displaystyle="true"' in formula(r"\sum_i a_i", display=True)
    assert "displaystyle" not in formula(r"\sum_i a_i")


@pytest.mark.parametrize(
    "tex", [r"\begin{cases}a\\b\end{cases}", "a$b", "", r"\unknown{x}", r"\frac{a", r"\frac{a}", "a}", r"\left(a"]
)
def test_what_cannot_be_read_is_shown_as_it_is(tex):
    assert formula(tex).startswith('<code class="th-tex">')


@pytest.mark.parametrize("tex", ["<script>alert(1)</script>", r"\text{<img src=x>}", r"\mathrm{<b>}", '"><b>', "层"])
def test_nothing_a_user_wrote_becomes_an_element(tex):
    html = formula(tex)
    assert not {"script", "img", "b"} & {node.tag for node in ElementTree.fromstring(html).iter()}
    assert "<script" not in html and "<img" not in html and "<b>" not in html


def test_prose_sets_mathematics_and_escapes_the_rest():
    html = prose("as $n^{-1}$ & <b>")
    assert html.startswith("as <math")
    assert html.endswith(" &amp; &lt;b&gt;")
    assert prose("costs $5") == "costs $5"
