"""What users read is written in plain words (docs/words.md): a list of lost words, held against every string they may see."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "theodolite"
LOST = re.compile(
    r"\b(doors?|told|dear(er|est)?|learnt|laid|lays|looked for|by heart|bears?|borne|thrown over|beside|anew|mends?|bought)\b"
    r"|\b(asked of|rightly|stands? (at|beside|for itself)|drawn by lot|what (the )?gradient promise[sd]|no price)\b"
    r"|behind (a|the|this|each|\d+|\{[^}]*\}) layers?|best constant answer|with the remedy|commonest"
    r"|carries over|(per|no|each|\d+|\{[^}]*\}) looks?\b",
    re.IGNORECASE,
)
GUIDES = (f"docs/{name}.md" for name in ("guide", "questions", "laws", "glossary", "clinic", "others", "transfer"))
COMING = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "from").glob("*.md")))
PAGES = ("README.md", *GUIDES, *COMING)
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))


def strings_of(path):
    """The strings of a module with a blank in them, and where: what might be read. Docstrings become pages only of entries."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            above = parents[node]
            page = above is tree.body[0] and path.parent.name in (
                "ailments",
                "instruments",
                "gallery",
            )  # this one is on one
            if page or not isinstance(above, ast.Expr | ast.JoinedStr):
                yield node.lineno, node.value


@pytest.mark.parametrize(
    "path", [*sorted(PACKAGE.rglob("*.py")), *GALLERY], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_no_string_that_users_read_has_a_lost_word(path):
    found = [f"{path}:{line}: {text}" for line, text in strings_of(path) if LOST.search(" ".join(text.split()))]
    assert not found


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_a_lost_word(page):
    text = re.sub(r"(?s)```.*?```", "", (ROOT / page).read_text(encoding="utf-8"))
    assert [line for line in text.splitlines() if LOST.search(line)] == []


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "report" / "templates").glob("*.html.j2")), ids=lambda path: path.name
)
def test_no_template_has_a_lost_word(path):
    text = re.sub(r"<[^>]*>|\{[%#].*?[%#]\}|\{\{.*?\}\}", " ", path.read_text(encoding="utf-8"))
    assert [line for line in text.splitlines() if LOST.search(line)] == []


def test_the_house_style_has_twenty_pairs_and_the_rule_sees_them():
    pairs = re.findall(r"(?m)^\| (.+?) \| (.+?) \|$", (ROOT / "docs" / "words.md").read_text(encoding="utf-8"))[1:]
    assert len(pairs) >= 20
    assert not [better for _, better in pairs if LOST.search(better)]
    assert sum(bool(LOST.search(now)) for now, _ in pairs) >= 8


def test_the_readme_is_short_and_its_picture_and_links_are_found_from_a_package_index():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    assert text.splitlines()[2].startswith(
        "**Theodolite finds what is wrong with your PyTorch model and what to change.**"
    )
    home = re.search(r'Homepage = "https://github.com/([^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for mark, link in re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", text):
        place = f"raw.githubusercontent.com/{home.group(1)}/main" if mark else f"github.com/{home.group(1)}/blob/main"
        start = f"https://{place}/"
        assert link.startswith(start) and (ROOT / link.removeprefix(start).partition("#")[0]).exists()
