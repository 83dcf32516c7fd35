"""Templates with values in them, what they do with names, statuses and bands, and the frame of a site."""

import re
import sys

import jinja2
import pytest

from fixtures.page_outline import Outline
from theodolite.report.html import survey_page
from theodolite.report.rendering import Frame, _environment, badge, document_page, parted, picture_file, rendered, strip
from theodolite.report.views import Bullet


def test_a_value_that_is_missing_is_an_error_and_not_a_gap():
    with pytest.raises(jinja2.UndefinedError):
        rendered("document.html.j2")


def test_a_figure_of_its_own_carries_its_style_once():
    alone = picture_file('<svg class="th-figure"><g class="th-a"/></svg>')
    assert alone.startswith('<svg class="theodolite th-figure"><style>')
    assert alone.count("<style>") == 1 and alone.endswith('<g class="th-a"/></svg>')


def test_names_break_after_dots_and_slashes_and_stay_text():
    assert parted("a.b/c 1.5") == "a.<wbr>b/<wbr>c 1.5"
    assert parted("<b>&\x1b") == "&lt;b&gt;&amp;�"
    assert "<script" not in badge("<script>", "<")


def test_a_band_that_is_open_ends_beyond_the_strip():
    def ends(low, high):
        drawn = strip(Bullet(low=low, high=high, left=40.0, right=60.0, value=50.0))
        return tuple(float(value) for value in re.findall(r"--[ab]:([-\d.]+)", drawn))

    assert ends(20.0, 80.0) == (20.0, 80.0)
    low, high = ends(0.0, 100.0)
    assert low < 0 and high > 100
    assert strip(None) == ""


def test_the_body_is_ours_and_the_title_is_text():
    seen = Outline(document_page("a < b", "<p id='x'>words</p>"))
    assert not seen.open
    assert "x" in seen.ids and "a < b" in "".join(seen.text)


def test_links_lead_from_the_root_and_to_the_neighbors():
    frame = Frame(root="../", links=(("Laws", "laws.html"),), before=("one", "a.html"), after=("two", "b.html"))
    links = Outline(document_page("t", "", frame)).links
    assert {"../laws.html", "../a.html", "../b.html"} <= set(links)


def test_templates_are_kept_compiled_where_python_may_write(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    pages = []
    for forbidden in (True, False, False):
        monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)
        _environment.cache_clear()
        pages.append(survey_page("x", (), (), {}))
        assert any(tmp_path.rglob("survey.html*.pyc")) is not forbidden
    for kept in tmp_path.rglob("*.pyc"):
        kept.write_bytes(b"damaged")
    _environment.cache_clear()
    assert {*pages, survey_page("x", (), (), {})} == {pages[0]}
    _environment.cache_clear()
