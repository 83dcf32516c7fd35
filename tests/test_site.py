"""The tables of the documents are whole, and the pages of the site are what their makers say."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import theodolite as th
from theodolite import catalogue

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

from generator import entries, glossary, handbook, pages, reference, walks  # noqa: E402  the generator lies beside the docs


@pytest.fixture(scope="module")
def told():
    return {document: walks.statements(document) for document in walks.TITLES}


def test_every_table_has_a_title_and_every_title_a_table(told):
    assert {path.stem for path in walks.TABLES.glob("*.csv")} == {*told, "beyond"}


def test_every_part_runs_as_something_that_is_there_or_says_why_not(told):
    for document, rows in told.items():
        for row in rows:
            assert row.kind in walks.KINDS, f"{document}: {row}"
            assert row.section and row.says.endswith((".", "?", ")")), f"{document}: {row}"
            assert row.runs_as or row.note, f"{document}: nothing runs and no reason: {row.says}"
            for name in row.runs_as:
                if name.startswith("th."):
                    value = th
                    for part in name.split(".")[1:]:
                        value = getattr(value, part)
                elif name.endswith(".py"):
                    assert (ROOT / name).exists(), name
                else:
                    catalogue.entry(name)


def test_the_first_page_of_the_documents_names_what_runs_as_nothing(told):
    page = walks.walk_pages({})[0].body
    without = [row for rows in told.values() for row in rows if not row.runs_as]
    assert len(without) <= 8
    listed = page.partition("With nothing that runs")[2].partition("</ul>")[0]
    assert listed.count("<li>") == len(without)
    for rows in told.values():
        assert "".join(f'<td class="th-num">{count}</td>' for count in walks.counts(rows).values()) in page


def test_no_law_is_left_out(told):
    named = {name for rows in told.values() for row in rows for name in row.laws}
    further = set(walks.beyond())
    left = set(catalogue.law_names()) - named - further
    assert not left, "say in docs/documents which statement each is, or in beyond.csv what it adds"
    assert not named & further


def test_sections_stand_together_in_the_order_of_the_document(told):
    for document, rows in told.items():
        order = [row.section for row in rows]
        runs = [section for place, section in enumerate(order) if place == 0 or order[place - 1] != section]
        assert Counter(runs).most_common(1)[0][1] == 1, f"{document}: a section is interrupted"


def test_the_tables_speak_of_all_kinds(told):
    kinds = Counter(row.kind for rows in told.values() for row in rows)
    assert all(kinds[kind] >= 5 for kind in walks.KINDS)


def test_links_between_hand_written_pages_lead_somewhere():
    found = [*handbook.guide_pages(), *handbook.coming_pages(), *handbook.other_pages()]
    files = pages.framed(found)
    outside = {address for _, address in pages.LINKS} | {
        pages.SEARCH,
        pages.SCRIPT,
        "design/rooms.svg",
        "neurons.svg",
        "adam_edge.svg",
        *(file.name for file in (ROOT / "docs").glob("transfer_*.svg")),
        *(f"{entry.kind}s/{entry.name}.html" for entry in catalogue.entries()),
    }
    assert pages.faults(files, outside) == []
    assert len(handbook.coming_pages()) == 6


def test_the_times_are_those_of_the_snippets_that_stand_there():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import coming_from

    told = json.loads(coming_from.OUT.read_text(encoding="utf-8"))
    assert set(told) == {file.stem for file in coming_from.PAGES.glob("*.md")}
    for page, found in told.items():
        assert found["digest"] == coming_from.digest(coming_from.snippets(page)), (
            f"{page}: run benchmarks/coming_from.py"
        )
        assert not found["own"]["error"]
        assert found["peer"]["error"] or 0 < found["peer"]["again"] < found["peer"]["whole"]
    shown = {Path(page.path).stem: page.body for page in handbook.coming_pages()}
    assert "PyHessian 0.1" in shown["pyhessian"] and "ends in" in shown["pyhessian"]
    assert "As published it stops" in shown["cockpit"]


def test_the_sick_networks_of_the_pages_are_found_where_no_test_runs():
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'docs')!r}); from generator import entries; "
    code += "print(all(module.SICK for module in entries.examples().values()))"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", env=env, check=False)
    assert found.stdout == "True\n", found.stderr


def test_faults_are_found():
    files = {"a.html": '<a href="b.html">b</a><a href="#c">c</a><code class="th-tex">x</code>', "d.html": "x" * 600_000}
    assert sorted(pages.faults(files)) == [
        "a.html: no b.html",
        "a.html: no place #c",
        "a.html: not drawn: x",
        "d.html: 600,000 bytes",
    ]


def test_the_reference_has_every_public_name():
    names = {page.title for page in reference.name_rows()}
    assert {"th.Watch", "th.survey", "th.theory.kernels.mlp_kernels", "th.optim.EGUpm"} <= names
    assert len(names) > 400
    text = reference.module_page("", reference.modules()[""]).body
    assert 'id="Watch"' in text and 'id="design"' in text


def test_the_errata_are_those_of_the_laws():
    page = entries.errata_page()
    wrong = [name for name in catalogue.law_names() if catalogue.law(name).erratum]
    assert all(f"laws/{name}.html" in page.body for name in wrong)
    assert page.summary.startswith(str(len(wrong)))


def test_words_of_the_glossary_are_linked_where_they_are_first_used():
    text = "<h2>Sharpness</h2><p>The sharpness, and the <code>sharpness</code>; sharpness again, skip connections.</p>"
    linked = glossary.with_links(text, "../")
    assert linked.count("<a ") == 2 and "<h2>Sharpness</h2>" in linked
    assert '<p>The <a href="../glossary.html#sharpness">sharpness</a>, and' in linked
    page = next(page for page in handbook.other_pages() if page.path == "glossary.html")
    assert all(f'id="{place}"' in page.body for place in glossary.places().values())
