"""What is written about the code is true of the code: names, paths, the picture of the rooms, the table of moves."""

import ast
import csv
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import theodolite as th
from theodolite import catalogue

ROOT = Path(__file__).parent.parent
PACKAGE = Path(th.__file__).parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SCRIPTS = sorted(
    [*(ROOT / "examples").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py"), *(ROOT / "docs").glob("*.py")]
)
ROOMS = "bayes|construct|core|instruments|integrations|io|laws|measure|report|theory|verbs"
DOTTED = re.compile(rf"(?<![\w./])(?:(?:theodolite|th)\.|(?=(?:{ROOMS})\.))([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
FILE = re.compile(r"`([\w./]+\.(?:py|csv|svg|json))`")
WRITTEN = {
    "records.jsonl",
    "readings.json",
    "diagnosis.json",
    "run/run.json",
    "train.py",
}  # what the package or its user writes


def resolved(name):
    """What a dotted name stands for after `import theodolite`; modules are imported on the way."""
    value = th
    for part in filter(None, name.split(".")):
        try:
            value = getattr(value, part)
        except AttributeError:
            if not hasattr(value, "__path__"):
                raise
            value = importlib.import_module(f"{value.__name__}.{part}")
    return value


def names_on(page):
    return sorted({m for m in DOTTED.findall(page.read_text(encoding="utf-8")) if not m.endswith((".py", ".md"))})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_on_a_page_is_there(page):
    unknown = []
    for name in names_on(page):
        try:
            resolved(name)
        except (AttributeError, ImportError):
            unknown.append(name)
    assert not unknown


def test_names_are_found_on_pages():
    found = {name for page in PAGES for name in names_on(page)}
    assert {"Watch", "optim.EGUpm", "theory.capacity.theorem_widths"} <= found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_on_a_page_is_there(page):
    text = page.read_text(encoding="utf-8")
    examples = set(re.findall(r"Write this as\s+`([^`]+)`", text))
    for path in set(FILE.findall(text)) - WRITTEN - examples:
        assert any((folder / path).exists() for folder in (ROOT, PACKAGE, page.parent)), f"{page.name}: no {path}"
    for path in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (page.parent / path).exists(), f"{page.name}: no {path}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_a_script_imports_of_the_package_is_there(script):
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "theodolite":
            module = resolved(node.module.partition(".")[2]) if "." in node.module else th
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}"), (
                    alias.name
                )
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("theodolite."):
                    importlib.import_module(alias.name)
    for name in re.findall(r"(?<![\w.])th\.([A-Za-z_][\w.]*\w)", script.read_text(encoding="utf-8")):
        resolved(name)


def test_the_picture_of_the_rooms_is_what_the_code_is():
    specification = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "rooms.py")
    rooms = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(rooms)
    drawn = rooms.picture()
    assert ("theory", "core") in rooms.imports()
    assert ("theory", "measure") not in rooms.imports() and ("measure", "theory") not in rooms.imports()
    assert drawn.count('class="does"') == len(rooms.imports()) + 1, "an import that no floor of pyproject.toml names"
    assert rooms.PICTURE.read_text(encoding="utf-8") == drawn, "the rooms have changed: run make docs"


def test_the_table_of_moves_ends_at_things_that_are_there():
    with (ROOT / "docs" / "design" / "moves.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 500
    moved = {row["old"]: row["new"] for row in rows if row["kind"] != "parameter"}
    for row in rows:
        assert row["old"] != row["new"]
        assert row["new"] or row["note"], f"{row['old']} went where?"
        end = row["new"]
        while end in moved:  # and moved again
            end = moved[end]
        if end and row["kind"] in ("law", "instrument", "ailment"):
            assert catalogue.entry(end).kind == row["kind"]
        # GPU code is imported where there is a GPU
        elif end and row["kind"] != "parameter" and "gpu" not in end:
            resolved(end.removeprefix("theodolite").lstrip("."))


def test_the_picture_of_the_bounds_on_neurons_is_what_theory_says():
    specification = importlib.util.spec_from_file_location("neurons", ROOT / "docs" / "neurons.py")
    neurons = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(neurons)
    bounds = neurons.curves()
    assert len(bounds) == 9
    assert bounds["Kawaguchi and Huang 2019: n"] == [float(n) for n in neurons.POINTS]
    assert neurons.picture().count('<path class="th-g-line') >= 16, "a line for each bound, and one in the legend"
    assert neurons.PICTURE.read_text(encoding="utf-8") == neurons.picture(), "the bounds have changed: run make docs"


def test_version_and_formats_are_said_the_same_everywhere():
    assert f"\nversion: {th.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", changes, flags=re.MULTILINE)
    assert heads[0] == "Unreleased" and all(
        re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", head) for head in heads[1:]
    )
    assert set(re.findall(r"^### (\w+)", changes, flags=re.MULTILINE)) <= {
        "Added",
        "Changed",
        "Fixed",
        "Removed",
        "Security",
    }
    said = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    formats = [path.stem for path in (PACKAGE / "io" / "formats").glob("[a-z]*.py")]
    assert len(formats) >= 8 and not [name for name in formats if f"`{name}`" not in said]


def test_ci_tries_every_python_that_the_package_says_it_runs_on():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tried,) = re.findall(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert re.findall(r"Python :: (3\.\d+)", project) == re.findall(r"3\.\d+", tried)


def test_the_page_of_benchmarks_is_linked_and_says_what_it_was_measured_on():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    linked = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "/docs/benchmarks.md)" in linked and "/docs/others.md)" in linked and "(others.md)" in page
    assert re.search(r"Measured \d{4}-\d\d-\d\d on .+ cores, Python .+ torch", page)
    assert "## Growth" in page and "The floors:" in page
